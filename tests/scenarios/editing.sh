#!/usr/bin/env bash
# Editing a waiting message in place: appending, writing further on, shortening. It keeps its place and is whole at every moment.
. "$(dirname "$0")/../lib/mount.sh"
spool_mount
for way in keep replace reject; do queue $way on_conflict=$way; done
claimable() { op rename "$mnt/$1/$2" "$mnt/$1/claimed/w/$2" | grep -qx OK; }

for way in keep replace reject; do
    q=$mnt/$way
    publish $way/before x
    publish $way/m $'one\n'
    publish $way/after x
    number=$(inode $way/m) published=$(counter $way published)
    echo two >>"$q/m"
    is "$way: >> edits the message" $'one\ntwo' "$(contents $way/m)"
    is "$way: which keeps its place and number" "before m after $number" "$(names $way) $(inode $way/m)"
    is "$way: and is not published again" "$published 3" "$(counter $way published) $(counter $way ready)"
    errno "$way: a first write further on edits as well" OK open "$q/m" O_WRONLY , pwrite 4 TWO , close
    is "$way: in place" $'one\nTWO'" before m after $number" "$(contents $way/m) $(names $way) $(inode $way/m)"
    errno "$way: after a first write further on, one at the start belongs to the edit" OK open "$q/m" O_RDWR , pwrite 4 two , pwrite 0 ONE , \
        reads $'ONE\ntwo\n' , close
    is "$way: so it is still one message" $'ONE\ntwo'" before m after $number" "$(contents $way/m) $(names $way) $(inode $way/m)"
    errno "$way: shortening edits" OK open "$q/m" O_WRONLY , ftruncate 3 , close
    is "$way: in place, too" "ONE before m after $number" "$(contents $way/m) $(names $way) $(inode $way/m)"
    errno "$way: so does truncate by name" OK truncate "$q/m" 2
    is "$way: to a length that is not 0" "ON before m after $number 3" "$(contents $way/m) $(names $way) $(inode $way/m) $(counter $way ready)"

    # While it is being edited.
    exec 5>>"$q/m"
    printf ' and more' >&5
    errno "$way: a message being edited cannot be claimed" ETXTBSY rename "$q/m" "$q/claimed/w/m"
    is "$way: others see it as it was" ON "$(contents $way/m)"
    is "$way: and it is not ready" 2 "$(counter $way ready)"
    exec 5>&-
    errno "$way: after the last close it can" OK rename "$q/m" "$q/claimed/w/m"
    is "$way: with the edit" "ON and more" "$(contents $way/claimed/w/m)"
    mv "$q/claimed/w/m" "$q/"
    is "$way: a release gives it its place back" "before m after" "$(names $way)"
    exec 5>>"$q/m"
    printf ' lost' >&5
    rm "$q/m"
    exec 5>&-
    is "$way: an edited message that is cancelled meanwhile is gone" "before after" "$(names $way)"
    find "$q" -maxdepth 1 -type f -delete
done

# An open descriptor and the message's further life.
q=$mnt/keep
publish keep/m old
errno "a write to a message that has been claimed since the open is ESTALE" ESTALE@write open "$q/m" 'O_WRONLY|O_APPEND' , \
    sh "mv $q/m $q/claimed/w/" , write lost
is "and changes nothing" old "$(contents keep/claimed/w/m)"
mv "$q/claimed/w/m" "$q/"
errno "so is one at offset 0" ESTALE@write open "$q/m" O_WRONLY , sh "mv $q/m $q/claimed/w/" , write lost
is "which changes nothing either" "old " "$(contents keep/claimed/w/m) $(names keep)"
mv "$q/claimed/w/m" "$q/"
errno "and one after the acknowledgement" ESTALE@write open "$q/m" O_WRONLY , sh "mv $q/m $q/claimed/w/ && rm $q/claimed/w/m" , write lost
is "from which nothing comes back" "0 0 0" "$(counter keep waiting) $(counter keep claimed) $(counter keep staged)"
publish keep/m old
errno "truncating it after it was claimed is ESTALE" ESTALE@ftruncate open "$q/m" O_WRONLY , sh "mv $q/m $q/claimed/w/" , ftruncate 0
is "and changes nothing, too" old "$(contents keep/claimed/w/m)"
rm "$q/claimed/w/m"

# Large ones, and edits that make a small payload large or a large one small.
head -c 100000 /dev/urandom >"$scratch/a"
head -c 100000 /dev/urandom >"$scratch/b"
cp "$scratch/a" "$q/m"
cat "$scratch/b" >>"$q/m"
is "an edit across the size of large payloads is right" "$(cat "$scratch/a" "$scratch/b" | sha256sum)" "$(sha256sum <"$q/m")"
errno "and back" OK truncate "$q/m" 100000
is "is right as well" "$(sha256sum <"$scratch/a")" "$(sha256sum <"$q/m")"
head -c 1000000 /dev/urandom >"$scratch/c"
cp "$scratch/c" "$q/m"
printf tail >>"$q/m"
is "appending to a large payload is right" "$(cat "$scratch/c" <(printf tail) | sha256sum)" "$(sha256sum <"$q/m")"
number=$(inode keep/m)
errno "a write in the middle of a large payload" OK open "$q/m" O_WRONLY , pwrite 500000 middle , close
printf middle | dd of="$scratch/c" bs=1 seek=500000 conv=notrunc status=none
is "is right, too" "$(cat "$scratch/c" <(printf tail) | sha256sum) $number" "$(sha256sum <"$q/m") $(inode keep/m)"
exec 5>>"$q/m"
printf more >&5
spool_kill
exec 5>&-
spool_remount
seen=$(sha256sum <"$q/m")
[ "$seen" = "$(cat "$scratch/c" <(printf tail) | sha256sum)" ] || [ "$seen" = "$(cat "$scratch/c" <(printf tailmore) | sha256sum)" ]
verdict $? "an edit that is open when the daemon dies has happened as far as it was flushed, or not at all" "seen: $(tail -c 20 "$q/m" | od -c)"
soon "and the message can be claimed" 3 claimable keep m
spool_done
