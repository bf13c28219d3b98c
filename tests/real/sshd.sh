# A login by key and a command: sshd speaks to the stranger in a child with a seccomp filter.
set -e
umask 077
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
[ "$(id -u)" != 0 ] || mkdir -p /run/sshd
ssh-keygen -q -t ed25519 -N '' -f "$here/host"
ssh-keygen -q -t ed25519 -N '' -f "$here/key"
cat >"$here/conf" <<END
HostKey $here/host
AuthorizedKeysFile $here/key.pub
StrictModes no
PermitRootLogin yes
UsePAM no
PidFile none
END
login() {
  ssh -F none -o ProxyCommand="/usr/sbin/sshd -i -f $here/conf" -o StrictHostKeyChecking=no -o BatchMode=yes \
    -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR -i "$here/key" "$(id -un)@nowhere" "$@"
}
login 'echo logged in; seq 3'
seq 100000 | login sort -n -r | cksum
