// Hostile commands at the edges of the sandbox: its own first process, descriptors, kernel interfaces, mounts that the
// next command gets, and files that programs outside read later.

import { type Attack, family } from './attack.ts';

// Python programs that need no double quote.
const py = (program: string, ...args: readonly string[]) => `python3 -c "${program}" ${args.join(' ')}`;
const call = (body: string) => `import ctypes,os; c=ctypes.CDLL(None,use_errno=True); ${body}`;

const PROCESSES: Readonly<Record<string, string>> = {
  'memory of the first process': py(
    `f=open('/proc/1/mem','r+b',0); f.seek(0x400000); f.write(b'x'); print('GOT_'+'THROUGH')`,
  ),
  'a folder descriptor that leads up': py(
    `import os; f=os.open('.',os.O_RDONLY); os.fchdir(f); [os.chdir('..') for _ in range(40)]; print(open('.@OUT@/secret.txt').read())`,
  ),
  'mount information as a way up': `grep -o '/[^ ]*outside[^ ]*' /proc/self/mountinfo | xargs -r cat`,
  'signal to every process': `trap '' TERM; kill -TERM -1; kill -KILL @PID@; kill -STOP @PID@; kill -KILL 0 -1 2>/dev/null; true`,
  'signal by a process descriptor': py(call(`f=c.syscall(434,@PID@,0); c.syscall(424,f,9,None,0)`)),
  'signal that a closed descriptor sends': py(
    `import fcntl,os; r,w=os.pipe(); fcntl.fcntl(r,fcntl.F_SETOWN,@PID@); fcntl.fcntl(r,fcntl.F_SETFL,os.O_ASYNC); os.write(w,b'x')`,
  ),
  'priority and limits of another':
    'renice -n 19 -p @PID@; prlimit --pid @PID@ --cpu=1:1; ionice -p @PID@ -c 3; chrt -p @PID@ && @GOT@',
  'a daemon whose parent was the shell of bwrap': `exec 3<&- ; ( ( trap '' HUP TERM INT; exec env -i sleep @NAP@ ) & ) & disown -a; true`,
  'a process in a new session with new groups': py(
    `import os; os.fork() or (os.setsid(), os.fork() or (os.setpgid(0,0), os.execvpe('sleep',['sleep','@NAP@'],{})))`,
  ),
};

const TERMINALS: Readonly<Record<string, string>> = {
  'typing into the terminal': py(
    `import fcntl,os; [fcntl.ioctl(f,0x5412,c.encode()) for f in (0,1,2,os.open('/dev/tty',2)) for c in 'touch @CAN@/typed\\n'] and print('GOT_'+'THROUGH')`,
  ),
  'pasting into a console': py(
    `import fcntl,glob; [fcntl.ioctl(open(t,'r+b',0),0x541C,bytes([3])) for t in glob.glob('/dev/tty*')+glob.glob('/dev/vc*')] and print('GOT_'+'THROUGH')`,
  ),
  'terminals of other processes':
    'for t in /dev/pts/[0-9]* /dev/tty[0-9]* /dev/console; do test -c $t && echo hello > $t && @GOT@; done; true',
  'a device made by hand': 'for d in "b 8 0" "b 254 0" "c 1 1" "c 1 11"; do mknod d$RANDOM $d && @GOT@; done',
};

const KERNEL: Readonly<Record<string, string>> = {
  'an abstract socket of the bus': py(
    `import socket,re; t=open('/proc/net/unix').read(); [socket.socket(socket.AF_UNIX).connect(chr(0)+n) or print('GOT_'+'THROUGH') for n in re.findall(r' @(\\S+)',t)+['@NAME@']]`,
  ),
  'a datagram to an abstract socket': py(
    `import socket; socket.socket(socket.AF_UNIX,socket.SOCK_DGRAM).connect(chr(0)+'@NAME@'); print('GOT_'+'THROUGH')`,
  ),
  'the peer of standard output': py(
    `import socket; s=socket.socket(fileno=1); p=s.getpeername(); t=socket.socket(socket.AF_UNIX); t.connect(p); print('GOT_'+'THROUGH')`,
  ),
  'what waits on the socket of standard output': py(
    `import socket,os,sys; s=socket.socket(fileno=os.dup(1)); s.settimeout(1); d=s.recv(9999); d and print('GOT_'+'THROUGH', d)`,
  ),
  'new mount calls': py(
    call(
      `r=[c.syscall(n,0,0,0,0,0) for n in (428,429,430,431,432,433,442,467)]; any(x>=0 for x in r) and print('GOT_'+'THROUGH',r)`,
    ),
  ),
  'changing into a namespace by /proc': py(
    call(`[c.setns(os.open('/proc/1/ns/'+n,0),0)==0 and print('GOT_'+'THROUGH') for n in os.listdir('/proc/1/ns')]`),
  ),
  'time and name of the machine': 'date -s 2001-01-01 && @GOT@; hostname evil && @GOT@; true',
  'control groups':
    'mkdir -p /sys/fs/cgroup/x && mount -t cgroup2 none /sys/fs/cgroup/x && @GOT@; ls /sys/fs/cgroup/* && @GOT@',
  'file capabilities': 'cp /bin/cat mycat && setcap cap_dac_override+ep mycat && @GOT@',
  'capability by extended attribute': py(
    `import os; open('x','w'); os.setxattr('x','security.capability',bytes([1,0,0,2])+bytes([255])*16); print('GOT_'+'THROUGH')`,
  ),
  'set-user-ID by modes of creation': py(
    `import os; [(os.close(os.open('s%d'%i,os.O_CREAT|os.O_WRONLY,0o4755)) if i else os.chmod('run.sh',0o6755)) for i in (0,1)]; print('GOT_'+'THROUGH')`,
  ),
  'set-user-ID from an archive': py(
    `import tarfile,io,os; t=tarfile.TarInfo('suid'); t.mode=0o4755; b=io.BytesIO(); a=tarfile.open(fileobj=b,mode='w'); a.addfile(t); a.close(); b.seek(0); tarfile.open(fileobj=b).extractall('.',filter='fully_trusted'); os.stat('suid').st_mode&0o4000 and print('GOT_'+'THROUGH')`,
  ),
  'another owner': 'chown 12345 numbers && @GOT@; chown 1:1 numbers && @GOT@; su nobody -s /bin/true && @GOT@',
};

const MOUNTS: Readonly<Record<string, string>> = {
  'git folder moved away': 'mv .git .git2 && @GOT@; mv .vscode .v2 && @GOT@; rm -rf .git; mkdir .git/x && @GOT@',
  'git folder behind a link':
    'ln -sfn @OUT@ .git && @GOT@; ln -sfT /tmp .husky && @GOT@; ln -sf /tmp/x .envrc/ && @GOT@; true',
  'the root moved from outside': 'cd .. && mv root root2 && @GOT@; cd / && rmdir @SLOT@ && @GOT@; true',
  'exchange of a sealed folder': py(
    call(`os.mkdir('mine'); r=c.syscall(316,-100,b'mine',-100,b'.git',2); r==0 and print('GOT_'+'THROUGH')`),
  ),
  'a hard link out of a read-only mount': 'ln .git/config c && echo x >> c && @GOT@; ln /usr/bin/env e && @GOT@; true',
  'a link in the private home':
    'ln -s @USER@ ~/again; ln -s @OUT@ /tmp/out; cat ~/again/.netrc /tmp/out/secret.txt; cat ~/.ssh/* ~/.aws/*',
  'a folder of the home becomes a link': 'rm -rf ~/.cargo ~/.pyenv; ln -s @OUT@ ~/.cargo; ln -s @OUT@ ~/.pyenv; true',
  'descriptor through a link race': `for i in $(seq 20); do ln -sfn @OUT@ race; cat race/secret.txt; rm race; mkdir race; rmdir race; done`,
  'mounting over with fuse': 'fusermount -u . && @GOT@; fusermount3 -o rw . && @GOT@; test -e /dev/fuse && @GOT@; true',
};

const LATER: Readonly<Record<string, string>> = {
  'git worktree and its settings': 'git worktree add ../w2 && @GOT@; git worktree add w3 && @GOT@; true',
  'a stash, a tag, a reference':
    'git stash && @GOT@; git tag evil && @GOT@; git update-ref refs/heads/main HEAD~1 && @GOT@; true',
  'the next command by its shell':
    'echo "touch @CAN@/b" > ~/.bash_profile; echo "touch @CAN@/b" > ~/.bash_env; echo "$PWD/libevil.so" > ~/ld.so.preload; echo x > /etc/ld.so.preload && @GOT@; true',
};

const WIDTH: Readonly<Record<string, string>> = {
  'a hundred thousand names of the outside': `python3 -c "import os; [print(open(r+'/secret.txt').read()) for r in ('/proc/self/cwd/../outside','/proc/thread-self/cwd/../outside','/proc/self/task/1/cwd/../outside','/dev/fd/../cwd/../outside') if os.path.exists(r+'/secret.txt')]"`,
  'git of another repository':
    'git -C @OUT@ status; git --git-dir=@OUT@/.git log; git clone @OUT@ x; git archive --remote=@OUT@ HEAD; git diff --no-index @OUT@/secret.txt numbers',
  'address of the proxy that is not there': 'ls /run/drover-proxy && @GOT@; ls /run/* && @GOT@; true',
  'a port of this machine, in every spelling': `for h in 127.0.0.1 0.0.0.0 127.1 2130706433 0x7f000001 localhost '[::1]' '[::ffff:127.0.0.1]'; do curl -sm2 http://$h:@PORT@/; done; true`,
  'sockets through descriptors':
    'for s in @SOCKETS@/launcher @SOCKETS@/agent /proc/1/root@SOCKETS@/docker; do curl -sm2 --unix-socket $s http://x/; done; true',
};

const NONE_BITES = false;

export const MEETING_ATTACKS: readonly Attack[] = [
  ...family('process', PROCESSES, NONE_BITES),
  ...family('terminal', TERMINALS, NONE_BITES),
  ...family('kernel', KERNEL, NONE_BITES),
  ...family('mount', MOUNTS, NONE_BITES),
  ...family('later', LATER, NONE_BITES),
  ...family('width', WIDTH, NONE_BITES),
];
