#!/usr/bin/env bash
# Publishing by last close: when a written file becomes a message, and when it does not.
. "$(dirname "$0")/../lib/mount.sh"
spool_mount
queue q
q=$mnt/q
mkfifo "$scratch/go"
forget_all() { find "$q" -maxdepth 1 -type f -delete; }
claimable() { op rename "$q/$1" "$q/claimed/w/$1" | grep -qx OK; }

# --- the redirection of a shell ---
echo hello >"$q/m"
is "echo > publishes" "hello 1 1 1" "$(contents q/m) $(counter q published) $(counter q waiting) $(counter q ready)"
is "the message has the writer's owner and mode" "0 0 644" "$(stat -c '%u %g %a' "$q/m")"
between "its atime is the time of publication" -5 0.1 "$(seconds_from_now "$(atime q/m)")"
errno "it can be claimed as soon as the redirection has returned" OK rename "$q/m" "$q/claimed/w/m"
rm "$q/claimed/w/m"

# --- open, not yet a message ---
exec 5>"$q/m"
is "an open file is listed" m "$(names q)"
is "with its size so far" 0 "$(stat -c %s "$q/m")"
errno "and cannot be claimed before the first write" ETXTBSY rename "$q/m" "$q/claimed/w/m"
printf 12345 >&5
is "the size follows the writes" 5 "$(stat -c %s "$q/m")"
errno "it cannot be claimed after a write" ETXTBSY rename "$q/m" "$q/claimed/w/m"
is "nothing is published yet" "1 0" "$(counter q published) $(counter q ready)"
printf 678 >&5
errno "it cannot be claimed after a flush with data in the middle" ETXTBSY rename "$q/m" "$q/claimed/w/m"
exec 5>&-
errno "when it is closed it can" OK rename "$q/m" "$q/claimed/w/m"
is "with all that was written" 12345678 "$(contents q/claimed/w/m)"
rm "$q/claimed/w/m"

# (a; b) > f: the exit of a child flushes, which is not the end.
(echo a; /bin/true; read -r _ <"$scratch/go"; /bin/true; echo b) >"$q/m" &
soon "(a; b) > f: the first half arrives" 5 test -s "$q/m"
errno "but cannot be claimed" ETXTBSY rename "$q/m" "$q/claimed/w/m"
echo >"$scratch/go"
soon "after the last close it can" 5 claimable m
is "and is whole" $'a\nb' "$(contents q/claimed/w/m)"
rm "$q/claimed/w/m"

# Children that inherit the descriptor keep the file open.
"$python" -c 'import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT, 0o644)
os.write(fd, b"parent ")
if os.fork() == 0:
    open(sys.argv[2]).read()
    os.write(fd, b"child")' "$q/m" "$scratch/go" &
soon "a child inherits a descriptor" 5 test -s "$q/m"
wait $!
errno "the parent's exit publishes nothing" ETXTBSY rename "$q/m" "$q/claimed/w/m"
echo >"$scratch/go"
soon "the child's exit does" 5 claimable m
is "with the words of both" "parent child" "$(contents q/claimed/w/m)"
rm "$q/claimed/w/m"

# --- several descriptors ---
exec 5>"$q/m"
printf a >&5
exec 6<"$q/m"
exec 5>&-
errno "a descriptor open for reading delays nothing" OK rename "$q/m" "$q/claimed/w/m"
exec 6<&-
rm "$q/claimed/w/m"
exec 5>"$q/m"
printf a >&5
printf b >>"$q/m"
errno "a second writer's close is not the last" ETXTBSY rename "$q/m" "$q/claimed/w/m"
exec 5>&-
errno "the first one's is" OK rename "$q/m" "$q/claimed/w/m"
is "appending to an open file goes to its end" ab "$(contents q/claimed/w/m)"
rm "$q/claimed/w/m"

# --- 1000 files: close, then at once claim and acknowledge ---
before=$(counter q acknowledged)
t "whatever was closed can be claimed by the next call, 1000 times" "$python" -c 'import os, sys
q = sys.argv[1]
for i in range(1000):
    fd = os.open(f"{q}/m{i}", os.O_WRONLY | os.O_CREAT, 0o644)
    os.write(fd, b"x" * (i + 1))
    os.close(fd)
    os.rename(f"{q}/m{i}", f"{q}/claimed/w/m{i}")
    assert os.stat(f"{q}/claimed/w/m{i}").st_size == i + 1
    os.unlink(f"{q}/claimed/w/m{i}")' "$q"
is "and all are acknowledged" $((before + 1000)) "$(counter q acknowledged)"

# --- taking part in a file's life before it is a message ---
exec 5>"$q/m"
echo x >&5
before=$(counter q published)
rm "$q/m"
errno "an open file that is removed is gone" ENOENT stat "$q/m"
echo y >&5
exec 5>&-
is "and is never published" "$before 0 0" "$(counter q published) $(counter q waiting) $(counter q staged)"
exec 5>"$q/m"
printf x >&5
mv "$q/m" "$q/n"
errno "an open file may be renamed, and is still open" ETXTBSY rename "$q/n" "$q/claimed/w/n"
printf y >&5
exec 5>&-
is "and is published under the new name" "n xy" "$(names q) $(contents q/n)"
mv "$q/n" "$q/claimed/w/" && rm "$q/claimed/w/n"
exec 5>"$q/m"
printf x >&5
mv "$q/m" "$q/.m"
exec 5>&-
is "an open file renamed to a staged name is not published" "0 1" "$(counter q waiting) $(counter q staged)"
rm "$q/.m"
exec 5>"$q/.m"
printf x >&5
mv "$q/.m" "$q/m"
errno "an open staged file with a final name is published by its last close only" ETXTBSY rename "$q/m" "$q/claimed/w/m"
printf y >&5
exec 5>&-
is "and is whole then" "m xy" "$(names q) $(contents q/m)"
forget_all

# --- opening without writing; metadata ---
echo one >"$q/m"
before=$(counter q published)
number=$(inode q/m)
errno "opening for writing and closing" OK open "$q/m" O_WRONLY , close
errno "opening to append and closing" OK open "$q/m" 'O_WRONLY|O_APPEND|O_CREAT' , close
t "touch" touch "$q/m"
t "chmod" chmod 640 "$q/m"
t "chown" chown 12:34 "$q/m"
is "publish nothing again" "$before 1 $number" "$(counter q published) $(counter q waiting) $(inode q/m)"
is "mode and owner are changed" "640 12 34" "$(stat -c '%a %u %g' "$q/m")"
errno "and the message can be claimed at once" OK rename "$q/m" "$q/claimed/w/m"
rm "$q/claimed/w/m"
errno "O_EXCL on a taken name is EEXIST" EEXIST@open open "$q/m" 'O_WRONLY|O_CREAT|O_EXCL' , write x , close , open "$q/m" 'O_WRONLY|O_CREAT|O_EXCL'
forget_all
errno "a file made by mknod is an empty message" OK mknod "$q/m" file
forget_all

# --- sizes set without writing ---
for step in "ftruncate 5000" "fallocate 0 0 5000"; do
    # shellcheck disable=SC2086
    errno "$step makes a message of zeros" OK open "$q/m" 'O_WRONLY|O_CREAT' , $step , close
    is "of the size asked for" "5000 0" "$(stat -c %s "$q/m") $(tr -d '\0' <"$q/m" | wc -c)"
    forget_all
done
errno "writes with a gap" OK open "$q/m" 'O_WRONLY|O_CREAT' , pwrite 300000 end , pwrite 10 middle , close
is "leave zeros in it" "300003 middleend" "$(stat -c %s "$q/m") $(tr -d '\0' <"$q/m")"
forget_all
errno "what was written can be read back through the same descriptor" OK open "$q/m" 'O_RDWR|O_CREAT' , write hello , reads hello , \
    pwrite 1 a , reads hallo , ftruncate 2 , reads ha , close
is "and is what is published" ha "$(contents q/m)"
forget_all
t "a file written through a shared mapping is published" "$python" -c 'import mmap, sys
with open(sys.argv[1], "wb+") as file:
    file.truncate(10000)
    with mmap.mmap(file.fileno(), 10000) as map:
        map[0:5] = b"hello"
        map[9995:10000] = b"world"' "$q/m"
soon "when the mapping is gone" 5 claimable m
is "with what was stored in it" "helloworld 10000" "$(contents q/claimed/w/m) $(stat -c %s "$q/claimed/w/m")"
rm "$q/claimed/w/m"
for call in fsync fdatasync; do
    errno "$call works while a file is open" OK open "$q/m" 'O_WRONLY|O_CREAT' , write x , $call , write y , $call , close
    is "and publishes once, at close" xy "$(contents q/m)"
    forget_all
done
errno "a directory can be synced" OK open "$q" O_RDONLY , fsync
errno "flock works" OK open "$q/m" 'O_WRONLY|O_CREAT' , flock , write x , close
forget_all
is "nothing is left" "0 0" "$(counter q waiting) $(counter q staged)"
spool_done
