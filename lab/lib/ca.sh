# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# A certificate authority per lab, in $LAB_DATA/ca: ca.pem, and NAME.pem with NAME.key for each
# party. Elliptic-curve keys; made anew with each lab, so never renewed.

# ca_create NAME: a CA that signs for this lab only.
ca_create() {
    mkdir -p -m 700 "$LAB_DATA/ca"
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -sha256 -days 3650 \
        -subj "/O=Berth lab/CN=$1" -keyout "$LAB_DATA/ca/ca.key" -out "$LAB_DATA/ca/ca.pem" \
        -addext keyUsage=critical,keyCertSign,cRLSign 2>"$LAB_DATA/ca/openssl.log" ||
        die "openssl could not make a certificate authority; see $LAB_DATA/ca/openssl.log"
}

# ca_issue HOST ADDRESS: good for both ends of a connection. libvirt and QEMU refuse a certificate whose
# critical usages leave keyEncipherment out, whatever the kind of its key.
ca_issue() {
    local base=$LAB_DATA/ca/$1
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -sha256 -subj "/O=Berth lab/CN=$1" \
        -keyout "$base.key" -out "$base.csr" 2>>"$LAB_DATA/ca/openssl.log" &&
        openssl x509 -req -sha256 -days 3650 -in "$base.csr" -CA "$LAB_DATA/ca/ca.pem" \
            -CAkey "$LAB_DATA/ca/ca.key" -CAcreateserial -out "$base.pem" -extfile /dev/stdin \
            2>>"$LAB_DATA/ca/openssl.log" <<END ||
basicConstraints=critical,CA:FALSE
keyUsage=critical,digitalSignature,keyEncipherment
extendedKeyUsage=serverAuth,clientAuth
subjectAltName=DNS:$1,IP:$2
END
        die "openssl could not issue a certificate for $1; see $LAB_DATA/ca/openssl.log"
    rm "$base.csr"
}
