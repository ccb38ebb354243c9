#!/bin/sh
# Stand-in: collects the node's tools into one compressed file, as the real one does.
out=nvidia-bug-report.log
while [ $# -gt 0 ]; do
  case $1 in
    --output-file) out=$2; shift ;;
    --output-file=*) out=${1#*=} ;;
  esac
  shift
done
case $out in *.gz) out=${out%.gz} ;; esac
cat <<'TEXT'

nvidia-bug-report.sh will now collect information about your
system and create the file 'nvidia-bug-report.log.gz' in the current
directory.  It may take several seconds to run.  In some
cases, it may hang trying to capture data generated dynamically
by the Linux kernel and/or the NVIDIA kernel module.  While
the bug report log file will be incomplete if this happens, it
may still contain enough data to diagnose your problem.

Running nvidia-bug-report.sh...
TEXT
{
  echo '____________________________________________'; echo
  echo 'Start of NVIDIA bug report log file.  Please include this file, along'
  echo 'with a detailed description of your problem, when reporting a graphics'
  echo 'driver bug via the NVIDIA Linux forum (see forums.developer.nvidia.com)'
  echo; echo "Date: $(date)"
  for line in 'nvidia-smi -q' 'nvidia-smi topo -m' 'nvidia-smi nvlink -s' dmesg ibstat; do
    echo '____________________________________________'; echo; echo "$line"; echo; $line
  done
  echo 'End of NVIDIA bug report log file.'
} 2>&1 | gzip > "$out.gz" && echo " complete."
