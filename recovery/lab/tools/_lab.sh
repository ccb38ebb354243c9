# Sourced by the stand-in tools: where this node's screens are.
: "${RECOVER_LAB_NODE:?this tool belongs to the lab}"
node=$RECOVER_LAB_DIR/nodes/$RECOVER_LAB_NODE
screens=$node/etc/screens

show() { # prints one screen, or fails as a tool does that has nothing to say
  if [ -r "$screens/$1" ]; then exec cat "$screens/$1"; fi
  echo "${0##*/}: $1 is not known here" >&2
  exit 1
}

now() { date '+%a %b %e %H:%M:%S %Y'; }
