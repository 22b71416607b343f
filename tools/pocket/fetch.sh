#!/bin/sh
# Unpack the npm packages that the build reads: sh fetch.sh FOLDER
# Each lands in FOLDER/NAME; the @iconify-json sets in FOLDER/iconify-NAME.
set -eu
mkdir -p "$1"
cd "$1"

fetch() { # NAME VERSION FOLDER
    archive=$(npm pack --silent "$1@$2")
    mkdir -p "$3"
    tar -xzf "$archive" -C "$3" --strip-components 1
    rm "$archive"
}

while read -r name version; do
    fetch "$name" "$version" "$name"
done <<END
emoji-datasource-google 16.0.0
cldr-annotations-full 48.2.0
cldr-annotations-derived-full 48.2.0
countries-list 3.4.1
END

while read -r set version; do
    fetch "@iconify-json/$set" "$version" "iconify-$set"
done <<END
twemoji 1.2.5
fluent-emoji-flat 1.2.6
fluent-emoji 1.2.7
emojione 1.2.3
fxemoji 1.2.2
circle-flags 1.2.11
flag 1.2.12
openmoji 1.2.29
emojione-v1 1.2.3
END
