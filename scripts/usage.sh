# shellcheck shell=bash
# Sourced first by every script in this folder. For --help or -h, prints the comment at the head of the script and
# exits. Arguments after -- belong to another command.
for colock_argument; do
    case $colock_argument in
    --) break ;;
    -h | --help)
        sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    esac
done
unset colock_argument
