#!/bin/bash
# A benchmark on Slurm: Ray's head and workers are started on the nodes of the job, embark runs on the first node.
#
#   sbatch --export=ALL,MODEL=org/name,BENCHMARK=MMEB-V3,EMBARK_STORE=s3://YOUR-BUCKET/embark examples/slurm.sh
#
# Change to what your cluster has: the lines of #SBATCH, and YOUR-ENVIRONMENT, a virtual environment that all nodes see, with
# pip install '.[ray,torch,video,audio,object-store]' of a checkout.
# Vectors go to EMBARK_STORE: a bucket, or a folder that all nodes see.
#
# Checked for its syntax and for the command line's options; it never ran on a real cluster (see docs/scale.md).
#SBATCH --job-name=embark
#SBATCH --nodes=2
#SBATCH --exclusive
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=128
#SBATCH --mem=0
#SBATCH --time=24:00:00
#SBATCH --requeue
#SBATCH --output=embark-%j.log
set -euo pipefail
: "${MODEL:?name a model, as embark models lists them}" "${BENCHMARK:?name a benchmark, as embark benchmarks lists them}"
: "${EMBARK_STORE:?name a bucket or a shared folder for the vectors}"
source "${ENVIRONMENT:-YOUR-ENVIRONMENT}/bin/activate"
export EMBARK_STORE EMBARK_RESULTS="${EMBARK_RESULTS:-$PWD/results}"

export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK # which srun does not take over from sbatch
head=$SLURMD_NODENAME
port=6379
processes=()
trap 'kill "${processes[@]}" 2>/dev/null || true' EXIT

srun --nodes=1 --ntasks=1 --nodelist="$head" ray start --head --port="$port" --block &
processes+=($!)
for attempt in {1..60}; do
    ray status --address="$head:$port" >/dev/null 2>&1 && break
    if [ "$attempt" = 60 ]; then
        echo "Ray's head did not answer within 5 minutes: see the lines above" >&2
        exit 1
    fi
    sleep 5
done

# Workers may join late: the run starts with those that are there.
if [ "$SLURM_NNODES" -gt 1 ]; then
    others=$((SLURM_NNODES - 1))
    srun --nodes="$others" --ntasks="$others" --exclude="$head" ray start --address="$head:$port" --block &
    processes+=($!)
fi

# A copy of the model for each GPU; half of the cores prepare items. A job that was requeued embeds only what the store lacks.
preparers=$((SLURM_NNODES * SLURM_CPUS_PER_TASK / 2))
embark run -m "$MODEL" -b "$BENCHMARK" --engine "ray:preparers=8-$preparers" --address auto
