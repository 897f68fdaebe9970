# Every target first gets what it needs (tools/need), or says in one line what is missing.

# The compiler alone cannot link: Debian only recommends the C library's headers and start files.
BUILD  := rust cc:gcc /usr/include/stdio.h:libc6-dev
# The real Linux md driver as an ordinary process (its guest has this machine's root and loads modules), and the tool that
# makes its arrays, and what makes devices that answer with errors.
ORACLE := linux.uml:user-mode-linux mdadm:mdadm dmsetup:dmsetup losetup:mount insmod:kmod
# What makes a disk of an export, in the kernel and by FUSE.
DISK   := nbd-client:nbd-client fuse2fs:fuse2fs fusermount3:fuse3
# What builds the bare Debian of `make fresh`, and the tool with which the tree gets there.
FRESH  := debootstrap:debootstrap git:git unshare:util-linux
# What builds and runs the machine with systemd, udev, mdadm and SCSI drives.
MACHINE := debootstrap:debootstrap debugfs:e2fsprogs qemu-system-x86_64:qemu-system-x86 /usr/bin/python3:python3
# What makes keys and certificates that our own TLS has not made.
TLS    := openssl:openssl
# What tests send signals with.
SIGNAL := kill:procps
# Foreign NBD clients and servers. nbdinfo starts `file`; without it, it prints bytes that are no text.
NBD    := nbdkit:nbdkit nbdinfo:libnbd-bin file:file qemu-io:qemu-utils fio:fio \
          curl:curl /usr/bin/python3:python3 /usr/lib/python3/dist-packages/nbd.py:python3-libnbd
# File systems that must be recognised before a member is overwritten.
FOREIGN := wipefs:util-linux mke2fs:e2fsprogs mkfs.vfat:dosfstools mkfs.xfs:xfsprogs mkfs.btrfs:btrfs-progs \
           mkfs.f2fs:f2fs-tools mkfs.exfat:exfatprogs mkntfs:ntfs-3g mksquashfs:squashfs-tools xorriso:xorriso \
           sfdisk:fdisk cryptsetup:cryptsetup-bin make-bcache:bcache-tools
# Checks the types of the console's modules, and runs them without a browser. Nothing of it is needed to build.
TYPES  := tsc:node-typescript node:nodejs
# Judge manual pages, and documents of --json; and a shell in which words are completed.
PAGES  := mandoc:mandoc zsh:zsh /usr/lib/python3/dist-packages/jsonschema:python3-jsonschema
# The other parity library, for comparison only.
ISAL   := /usr/lib/x86_64-linux-gnu/libisal.so.2:libisal2

# Judges the rules for Prometheus. Its package starts a server, so it is unpacked only (tools/unpack).
RULES  := promtool prometheus
export PATH := $(PATH):$(CURDIR)/target/unpacked/bin

.PHONY: help run test soak fresh package torture bench lint docs gallery

help: ## say what the targets are
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "make %-7s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: ## build and start the demo: eight file-backed drives, an array, an NBD export, a client; MODEL=wd740gd paces the drives
	@tools/need $(BUILD) $(NBD)
	cargo run --release -p $(if $(MODEL),openraid-lab -- demo --model $(MODEL),openraid -- demo)

# Nothing of a whole check is built a second time: without the store for that, the engine builds in a seventh less processor time.
test: export CARGO_INCREMENTAL ?= 0
# A panic names its line without them, and they take an eighth of the compiler's time.
test: export CARGO_PROFILE_DEV_DEBUG ?= 0
# Engine, models and simulation run a third faster for a seventh more of the compiler's time.
test: export CARGO_PROFILE_DEV_OPT_LEVEL ?= 2
# Two units of code for a package instead of up to 256: inlined functions are compiled once for each unit.
test: export CARGO_PROFILE_DEV_CODEGEN_UNITS ?= 2
test: ## everything that must hold before a change lands (about 20 minutes on two cores, from a cold clone)
	@tools/need $(BUILD) $(ORACLE) $(SIGNAL) $(NBD) $(TLS) $(DISK) $(FOREIGN) $(TYPES) $(PAGES)
	@tools/unpack $(RULES)
	cargo xtask ci

soak: ## the whole of what `test` takes slices of (hours)
	@tools/need $(BUILD) $(ORACLE) $(SIGNAL) $(NBD) $(TLS) $(DISK) $(FOREIGN) $(TYPES) $(PAGES)
	@tools/unpack $(RULES)
	cargo xtask soak
	python3 python/tests/ray_sweep.py
	@tools/console
	@tools/redfish || [ $$? = 77 ]
	@tools/fuzz || [ $$? = 77 ]
	cargo build --release -p openraid
	@tools/reshape_proof.py
	@tools/need $(BUILD) git:git strip:binutils dpkg-deb:dpkg lintian:lintian /usr/bin/python3:python3
	@tools/reproduce
	@if [ "$$(id -u)" = 0 ]; then $(MAKE) --no-print-directory package fresh && tools/try-package && \
	tools/need $(MACHINE) && tools/machine.py; \
	else echo "left out: make fresh, tools/try-package and tools/machine.py, which need root"; fi

fresh: ## `run` and `test` in a bare Debian 12 that debootstrap builds for it (root; an hour)
	@tools/need $(FRESH)
	@tools/fresh

package: ## target/package/openraid_*.deb and openraid-lab_*.deb for Debian 12; `tools/package static` makes a tar file that needs no library
	@tools/need $(BUILD) strip:binutils dpkg-deb:dpkg /usr/bin/python3:python3
	@tools/package

# Each day other runs: those of yesterday are known. FROM=1 begins with the first one.
FROM ?= $(shell date +%Y%m%d)00001
torture: ## hunts every planted bug, then an hour of power cuts and worse, on simulated drives: nothing promised may be lost
	@tools/need $(BUILD)
	cargo run --profile hunt -p openraid-sim --features planted --example hunt
	cargo run --release -p openraid-lab -- torture --minutes 60 --seeds $(FROM)..99999999999999

bench: ## ratios measured in one run, CPU time per I/O first
	@tools/need $(BUILD) $(NBD)
	@tools/need $(ISAL) || echo "going on without the comparison to ISA-L"
	cargo xtask bench

lint: ## the checks of `test` that read the sources without running them, and cargo-deny (installed if missing)
	@tools/need $(BUILD) $(TYPES)
	cargo xtask lint

docs: ## the two books of docs/ in target/book, every link followed (mdbook is installed if missing)
	@tools/need $(BUILD)
	cargo xtask docs

gallery: ## five reviews run again on simulated machines: pages in target/gallery (minutes; a repeated call continues)
	@tools/need $(BUILD)
	cargo run --release -p openraid-methods --bin openraid-gallery -- target/gallery
