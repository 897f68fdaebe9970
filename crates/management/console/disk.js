// An array as a disk of a machine with Linux: one line to paste, which makes a file system only if none is there.

import { h, copying } from "./ui.js";
import { word } from "./words.js";

/** The socket of the packaged configuration, to which the packaged unit connects. */
const PACKAGED = "/run/openraid-nbd/nbd.sock";

/** Data members of a stripe, for the options of a file system; 0 if they do not matter. */
const dataMembers = (array) => (array.chunk_bytes ? { raid0: array.slots, raid4: array.slots - 1, raid5: array.slots - 1, raid6: array.slots - 2, raid10: Math.floor(array.slots / 2) }[array.level] || 0 : 0);

/** A name as an instance of a unit, as systemd-escape writes it. @param {string} name */
export const instance = (name) => [...new TextEncoder().encode(name)].map((byte, at) => {
  const letter = String.fromCharCode(byte);
  return letter === "/" ? "-" : /[A-Za-z0-9:_]/.test(letter) || (letter === "." && at > 0) ? letter : `\\x${byte.toString(16).padStart(2, "0")}`;
}).join("");
/** A name as udev has it in a link. @param {string} name */
const plain = (name) => name.replace(/[^A-Za-z0-9#+\-.:=@_\u0080-\uffff]/g, "_");

/** The steps from a device to a mount. */
function mounted(array, device) {
  const columns = dataMembers(array);
  const layout = columns && array.chunk_bytes >= 4096 ? ` -E stride=${array.chunk_bytes / 4096},stripe_width=${(columns * array.chunk_bytes) / 4096}` : "";
  const folder = word(`/srv/${plain(array.name)}`);
  return { folder, steps: [`blkid ${device} || mkfs.ext4 -q${layout} ${device}`, `mkdir -p ${folder}`] };
}

/** By the packaged unit: the disk and its mount are there at every boot. */
function byUnit(array) {
  const unit = `openraid-disk@${instance(array.name)}.service`;
  const device = word(`/dev/openraid/${plain(array.name)}`);
  const { folder, steps } = mounted(array, device);
  // In the table of file systems a backslash begins an escape of its own.
  const boot = unit.includes("\\") ? [`mount ${device} ${folder}`] : [`grep -q ${word(`^${device} `)} /etc/fstab || echo ${word(`${device} ${folder} ext4 nofail,_netdev,x-systemd.requires=${unit} 0 2`)} >>/etc/fstab`, "systemctl daemon-reload", `mount ${folder}`];
  return [`systemctl enable --now ${word(unit)}`, ...steps, ...boot].join("; ");
}

/** By hand, until the next boot: where the array is served. */
function byHand(array, where) {
  const server = where.path ? `server.type=unix,server.path=${where.path}` : `server.type=inet,server.host=${where.host},server.port=${where.port}`;
  const options = `driver=nbd,${server},export=${where.name.replaceAll(",", ",,")},reconnect-delay=300`;
  const { folder, steps } = mounted(array, "$d");
  return ["command -v qemu-nbd >/dev/null || apt-get install -y qemu-utils", "modprobe nbd", "for b in /sys/block/nbd*; do [ -e $b/pid ] || break; done; d=/dev/${b##*/}",
    `qemu-nbd --fork --connect=$d --cache=none --discard=unmap --image-opts ${word(options)}`, "until [ $(cat $b/size) != 0 ]; do sleep 0.1; done", ...steps, `mount $d ${folder}`].join("; ");
}

/** Where clients find an array: the socket of the package first, then any socket, then TCP. */
function places(array) {
  const unix = array.addresses.flatMap((own) => { const found = /^nbd\+unix:\/\/\/(.*)\?socket=(.*)$/.exec(own); return found ? [{ name: decodeURIComponent(found[1]), path: decodeURIComponent(found[2]) }] : []; });
  const tcp = array.addresses.flatMap((own) => { const found = /^nbd:\/\/(.*):(\d+)\/(.*)$/.exec(own); return found ? [{ name: decodeURIComponent(found[3]), host: found[1].replace(/[[\]]/g, ""), port: found[2] }] : []; });
  return [...unix.filter((own) => own.path === PACKAGED), ...unix, ...tcp];
}

/** @param {any} array @param {boolean} open it is what the user came for */
export function asDisk(array, open) {
  const [where] = places(array);
  const packaged = where?.path === PACKAGED && where.name === array.name;
  const line = where && `sudo sh -ec ${word(packaged ? byUnit(array) : byHand(array, where))}`;
  return h("details", { open }, h("summary", {}, h("h2", {}, "Use it as a disk")), line
    ? [h("p", {}, `Paste this line into a terminal of ${where.path || where.host === "127.0.0.1" ? "the server" : "the machine that is to have it"}. It makes a file system if there is none, and mounts it at `, h("code", {}, `/srv/${plain(array.name)}`), packaged ? ", now and at every boot." : " until the next boot."), h("pre", { id: "disk-line", tabIndex: 0 }, line), copying({ id: "copy-line" }, line, "Copy")]
    : h("p", {}, "It has no address for plain NBD. A client of NBD over TLS needs a certificate, as ", h("code", {}, "man qemu-nbd"), " says; a host of NVMe/TCP connects as ", h("code", {}, "man nvme-connect"), " says."), h("p", {}, "Virtual machines and other clients take its address: ", array.addresses.length ? array.addresses.map((own) => [h("code", {}, own), " "]) : "it has none."));
}
