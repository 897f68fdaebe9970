// The server: requests, the stream of events, and the last state of everything.

/** Alarms: warnings and worse that hold and were not acknowledged.
 * @type {{ session: any, arrays: any[], alarms: any[], fresh: boolean }} */
export const state = { session: null, arrays: [], alarms: [], fresh: false };
/** May the user do what this role may? @param {"Operator" | "Administrator"} role */
export const may = (role) => ["Administrator", role].includes(state.session?.role);
/** @type {Set<(kind: "session" | "status" | "log" | "alarms", value?: any) => void>} */
const listeners = new Set();
export const listen = (listener) => { listeners.add(listener); return () => listeners.delete(listener); };
/** @type {(kind: "session" | "status" | "log" | "alarms", value?: any) => void} */
const tell = (kind, value) => listeners.forEach((listener) => listener(kind, value));

export class Problem extends Error {
  /** @param {number} status @param {string} text */
  constructor(status, text) { super(text); this.status = status; }
}

/**
 * Ask the server.
 * @param {string} method
 * @param {string} path below `/api/v1`
 * @param {object} [body]
 * @param {string | null} [version] the state that the change is for
 * @returns {Promise<{ value: any, version: string | null }>}
 * @throws {Problem} its refusal, or that it does not answer
 */
export async function call(method, path, body, version) {
  /** @type {Record<string, string>} */
  const headers = {};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (version) headers["If-Match"] = version;
  let answer;
  try {
    answer = await fetch(`/api/v1${path}`, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch {
    throw new Problem(0, "The server does not answer.");
  }
  const text = await answer.text();
  const value = text ? JSON.parse(text) : null;
  if (!answer.ok) {
    if (answer.status === 401 && path !== "/session") { state.session = null; tell("session"); }
    throw new Problem(answer.status, value?.detail || `The server answered ${answer.status}.`);
  }
  return { value, version: answer.headers.get("etag") };
}

/** @type {(path: string) => Promise<any>} */
export const get = async (path) => (await call("GET", path)).value;
/** @type {(name: string) => any} */
export const array = (name) => state.arrays.find((own) => own.name === name);
const path = (name) => `/arrays/${encodeURIComponent(name)}`;

/** Orders for an array as it is by then, whatever its members do. */
const LOOSE = ["/settings", "/check", "/pause", "/resume"];

/**
 * Change an array: only if it still is what this page shows.
 * @param {string} name
 * @param {string} method
 * @param {string} what the path below that of the array
 * @param {object} [body]
 * @returns {Promise<any>}
 */
export async function change(name, method, what, body = {}) {
  if (LOOSE.includes(what)) return (await call(method, path(name) + what, body)).value;
  const seen = array(name);
  const { value, version } = await call("GET", path(name));
  const shape = (own) => own && JSON.stringify([own.health, own.members.map((m) => [m.slot, m.device, m.state]), own.spans.length]);
  if (seen && shape(seen) !== shape(value)) throw new Problem(412, "The array has changed. Check it and repeat.");
  return (await call(method, path(name) + what, body, version)).value;
}

/** Read the open alarms, of the server and of all arrays. */
export async function readAlarms() {
  state.alarms = (await get("/alarms?level=warning")).alarms.filter((alarm) => !alarm.acknowledged_seconds);
  tell("alarms");
}

/** How long a stream that broke off waits before it asks for the session again, in ms. */
const AGAIN = 2000;
/** @type {EventSource | undefined} */
let stream;
export function open() {
  stream?.close();
  const own = new EventSource("/api/v1/stream");
  stream = own;
  own.addEventListener("status", (event) => {
    state.arrays = JSON.parse(event.data).arrays;
    state.fresh = true;
    tell("status");
  });
  own.addEventListener("log", (event) => tell("log", JSON.parse(event.data)));
  own.addEventListener("error", () => {
    state.fresh = false;
    tell("status");
    // The browser does not come back after a refusal, and after a lost connection only late.
    own.close();
    setTimeout(() => { if (stream === own) again(); }, AGAIN);
  });
}
/** The server may be another one by now: the session goes on, or the user has to sign in. */
async function again() {
  const own = stream;
  try { state.session = await get("/session"); } catch (problem) {
    if (problem.status === 401) { state.session = null; tell("session"); } else setTimeout(() => { if (stream === own) again(); }, AGAIN);
    return;
  }
  if (stream === own) { readAlarms().catch(() => {}); open(); }
}
export function close() { stream?.close(); stream = undefined; }
