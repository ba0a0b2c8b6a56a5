#!/usr/bin/env bash
# Libraries as they are: Python, Perl and Node write files into a queue, and consume from it.
. "$(dirname "$0")/../lib/mount.sh"
spool_mount
queue q
q=$mnt/q
cd "$scratch" || exit 1
printf 'line one\nline two\n' >small

# SENTENCE PROGRAM...: must exit with 0 and leave the one message m, "line one\nline two\n", that can be claimed within a moment.
writes() {
    local sentence=$1 status=0 seen published
    shift
    published=$(counter q published)
    "$@" >"$last_output" 2>&1 </dev/null || status=$?
    seen="exit $status, messages: $(names q)"
    wait_until 3 bash -c 'mv "$1/m" "$1/claimed/w/" 2>/dev/null' - "$q" && seen+=", claimed"
    cmp -s small "$q/claimed/w/m" && seen+=", content right"
    seen+=", staged: $(counter q staged), published: $(($(counter q published) - published))"
    is "$sentence" "exit 0, messages: m, claimed, content right, staged: 0, published: 1" "$seen"
    [ $status = 0 ] || sed 's/^/#   /' "$last_output"
    find "$q" -type f -delete
}
py() { writes "Python: $1" "$python" -c "import os, pathlib, shutil, sys, tempfile; q = sys.argv[1]; text = open('small').read()
$2" "$q"; }
pl() { writes "Perl: $1" perl -e "use strict; use warnings; my \$q = \$ARGV[0]; my \$text = \"line one\nline two\n\"; $2" "$q"; }

py "open, write, close" 'with open(f"{q}/m", "w") as file: file.write(text)'
py "line by line, unbuffered" 'with open(f"{q}/m", "wb", 0) as file:
    for line in text.encode().splitlines(True): file.write(line)'
py "never closed but by the end" 'file = open(f"{q}/m", "w"); file.write(text)'
py "open for appending" 'with open(f"{q}/m", "a") as file: file.write(text)'
py "exclusive" 'with open(f"{q}/m", "x") as file: file.write(text)'
py "w+ and reading back" 'with open(f"{q}/m", "w+") as file:
    file.write(text); file.seek(0); assert file.read() == text'
py "pathlib" 'pathlib.Path(q, "m").write_text(text)'
py "a dot-name and os.replace" 'with open(f"{q}/.m", "w") as file:
    file.write(text); file.flush(); os.fsync(file.fileno())
os.replace(f"{q}/.m", f"{q}/m")'
py "NamedTemporaryFile and os.replace" 'with tempfile.NamedTemporaryFile("w", dir=q, delete=False) as file:
    file.write(text); file.flush(); os.fsync(file.fileno())
os.replace(file.name, f"{q}/m")'
py "mkstemp and os.rename" 'fd, path = tempfile.mkstemp(dir=q); os.write(fd, text.encode()); os.close(fd); os.rename(path, f"{q}/m")'
py "NamedTemporaryFile and os.link" 'with tempfile.NamedTemporaryFile("w", dir=q, prefix=".") as file:
    file.write(text); file.flush(); os.link(file.name, f"{q}/m")'
py "shutil.copy" 'shutil.copy("small", f"{q}/m")'
py "shutil.copy2" 'shutil.copy2("small", f"{q}/m")'
py "shutil.copyfile" 'shutil.copyfile("small", f"{q}/m")'
py "shutil.move from another filesystem" 'shutil.copy("small", "moved"); shutil.move("moved", f"{q}/m")'
py "TemporaryFile in the queue leaves nothing" 'with tempfile.TemporaryFile(dir=q) as file: file.write(b"x")
open(f"{q}/m", "w").write(text)'
py "flock, write, close" 'import fcntl
with open(f"{q}/m", "w") as file:
    fcntl.flock(file, fcntl.LOCK_EX); fcntl.lockf(file, fcntl.LOCK_EX); file.write(text)'
py "from a child process" 'import subprocess
with open(f"{q}/m", "w") as file: subprocess.run(["cat", "small"], stdout=file, check=True)'

pl "open, print, close" 'open(my $f, ">", "$q/m") or die $!; print $f $text; close($f) or die $!;'
pl "appending" 'open(my $f, ">>", "$q/m") or die $!; print $f $text; close($f) or die $!;'
pl "open for reading and writing" 'open(my $f, "+>", "$q/m") or die $!; print $f $text; close($f) or die $!;'
pl "a dot-name and rename" 'open(my $f, ">", "$q/.m") or die $!; print $f $text; close($f) or die $!; rename("$q/.m", "$q/m") or die $!;'
pl "File::Copy::copy" 'use File::Copy; copy("small", "$q/m") or die $!;'
pl "File::Copy::move from another filesystem" 'use File::Copy; copy("small", "moved") or die $!; move("moved", "$q/m") or die $!;'
pl "File::Temp and rename" 'use File::Temp; my $f = File::Temp->new(DIR => $q, UNLINK => 0); print $f $text; close($f) or die $!;
    rename($f->filename, "$q/m") or die $!;'

if command -v node >/dev/null; then
    js() { writes "Node: $1" node -e "const fs = require('fs'); const q = process.argv[1]; const text = 'line one\nline two\n'; $2" "$q"; }
    js "writeFileSync" 'fs.writeFileSync(`${q}/m`, text)'
    js "writeFile" 'fs.writeFile(`${q}/m`, text, error => { if (error) throw error })'
    js "promises.writeFile" 'fs.promises.writeFile(`${q}/m`, text)'
    js "writeFile with flush" 'fs.writeFileSync(`${q}/m`, text, { flush: true })'
    js "appendFile" 'fs.appendFileSync(`${q}/m`, text)'
    js "a stream" 'const s = fs.createWriteStream(`${q}/m`); s.write("line one\n"); s.end("line two\n")'
    js "copyFile" 'fs.copyFileSync("small", `${q}/m`)'
    js "a dot-name and rename" 'fs.writeFileSync(`${q}/.m`, text); fs.renameSync(`${q}/.m`, `${q}/m`)'
    js "cpSync of a directory" 'fs.mkdirSync("one", { recursive: true }); fs.copyFileSync("small", "one/m"); fs.cpSync("one", q, { recursive: true })'
fi
if command -v go >/dev/null; then
    cat >write.go <<'GO'
package main

import "os"

func main() {
	if err := os.WriteFile(os.Args[1]+"/m", []byte("line one\nline two\n"), 0644); err != nil {
		panic(err)
	}
}
GO
    go build -o write write.go && writes "Go: os.WriteFile" ./write "$q"
fi

# --- consuming ---
consume() { # SENTENCE PROGRAM...: claims q/m into claimed/w, reads and removes it
    local sentence=$1
    shift
    cp small "$q/m"
    t "$sentence" "$@"
    is "$sentence: and it is acknowledged" "0 0" "$(counter q waiting) $(counter q claimed)"
    find "$q" -type f -delete
}
consume "Python claims, reads, removes" "$python" -c 'import os, sys
q = sys.argv[1]
os.rename(f"{q}/m", f"{q}/claimed/w/m")
assert open(f"{q}/claimed/w/m").read() == open("small").read()
os.remove(f"{q}/claimed/w/m")' "$q"
consume "Python claims with shutil.move" "$python" -c 'import os, shutil, sys
q = sys.argv[1]
shutil.move(f"{q}/m", f"{q}/claimed/w")
assert open(f"{q}/claimed/w/m").read() == open("small").read()
os.remove(f"{q}/claimed/w/m")' "$q"
consume "Perl claims, reads, removes" perl -e 'my $q = $ARGV[0]; rename("$q/m", "$q/claimed/w/m") or die $!;
    open(my $f, "<", "$q/claimed/w/m") or die $!; local $/; <$f> eq "line one\nline two\n" or die; unlink("$q/claimed/w/m") or die $!' "$q"
command -v node >/dev/null && consume "Node claims, reads, removes" node -e 'const fs = require("fs"); const q = process.argv[1];
    fs.renameSync(`${q}/m`, `${q}/claimed/w/m`);
    if (fs.readFileSync(`${q}/claimed/w/m`, "utf8") !== "line one\nline two\n") process.exit(1);
    fs.unlinkSync(`${q}/claimed/w/m`)' "$q"
cd / || exit 1
spool_done
