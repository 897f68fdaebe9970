#!/bin/sh
# A plan over many machines as a Slurm array of 16 tasks, and one task that joins the parts:
#
#   id=$(sbatch --parsable --array=1-16 python/examples/slurm.sh)
#   sbatch --dependency=afterok:$id --wrap 'openraid-lab merge parts/*.json --json > plan.json'
#
# A task that failed is begun again by itself: sbatch --array=7 python/examples/slurm.sh
#SBATCH --cpus-per-task=2
#SBATCH --time=02:00:00
set -eu
parts=16
mkdir -p parts
openraid-lab plan --drives 4,6,8,10,12,16,20,24 --drive exos_x18_18tb,mg08_16tb,ironwolf_10tb,n300_8tb --bus pcie3_x4,pcie3_x8 \
    --load vm --effort quick --shard "$SLURM_ARRAY_TASK_ID/$parts" --json > "parts/$SLURM_ARRAY_TASK_ID.new"
# The file is there when it is complete.
mv "parts/$SLURM_ARRAY_TASK_ID.new" "parts/$SLURM_ARRAY_TASK_ID.json"
