#!/bin/sh
# From a folder of pictures (a folder a class) to a comparison of two models, with a gate, a LaTeX table and a map.
#
#   sh examples/own_data.sh PICTURES OUT [CANDIDATE [RELEASED]]
set -eu
pictures=$1
out=$2
candidate=${3:-embark/pocket}
released=${4:-embark/handmade}
mkdir -p "$out"
export EMBARK_RESULTS="$out/results"

embark run -m "$candidate" -m "$released" --folder "$pictures" --name Pictures

# The table of the paper: the best score in bold.
embark leaderboard --include own -t 'Pictures*' --format latex --select 'model,mean,Probe,Zero-shot' > "$out/table.tex"

# Where the candidate errs, and how it sees the pictures.
embark analyze confusion -m "$candidate" -t PicturesProbe --plot "$out/confusion.png"
embark analyze map -m "$candidate" -m "$released" -t PicturesProbe --by label --plot "$out/map.png"

# The gate comes last: status 1 if the candidate is worse by more than chance and by more than a point.
embark compare "$candidate" "$released" -t 'Pictures*' --fail-if-worse --margin 1 --plot "$out/differences.png"
