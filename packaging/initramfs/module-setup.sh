#!/bin/bash
# Module of dracut: as the hook of initramfs-tools, rules that name the arrays of openraid come before those of md.

check() {
    [ -x /usr/bin/openraid ]
}

depends() {
    echo udev-rules
}

install() {
    local rules="$initdir/usr/lib/udev/rules.d/62-openraid-arrays.rules"
    mkdir -p "${rules%/*}"
    if ! /usr/bin/openraid config udev >"$rules"; then
        dwarn "openraid: the registry cannot be read: the initramfs will let md take the members of openraid"
        rm -f "$rules"
    fi
}
