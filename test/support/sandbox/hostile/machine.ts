// Hostile commands against the machine: other processes, sockets, descriptors, mounts, devices and drover's state. A
// sleep that outlives its command is a process that escaped.

import { type Attack, family } from './attack.ts';

export const MACHINE_ATTACKS: readonly Attack[] = [
  ...family('state of drover', {
    'a journal is read': 'cat @STATE@/sessions/one/journal.jsonl',
    'a journal is found and read': 'find @STATE@ -type f | xargs cat',
    'the token of the server is read': 'cat @STATE@/token',
    'a journal is written': 'echo x >> @STATE@/sessions/one/journal.jsonl',
    'the config is written': 'echo "sandbox: off" >> @STATE@/config.yaml',
    'the kept verdict of the probe is written': 'mkdir -p @STATE@/sandbox; echo "{}" > @STATE@/sandbox/probe.json',
    'the launcher is reached': 'python3 -c "@UNIX@" @SOCKETS@/launcher',
    'the launcher is reached from Node':
      "node -e \"require('net').connect('@SOCKETS@/launcher').on('data', (d) => console.log(String(d)))\"",
    'serve is reached': 'exec 9<>/dev/tcp/127.0.0.1/@PORT@ && cat <&9',
    'serve is reached over IPv6':
      "node -e \"require('net').connect(@PORT@, '::ffff:127.0.0.1').on('data', (d) => console.log(String(d)))\"",
    'serve is reached by curl': 'curl -s --max-time 2 --http0.9 http://127.0.0.1:@PORT@/',
  }),
  ...family('other slot', {
    'a file of another slot is read': 'cat @SLOT@/file.txt',
    'a file of another slot is written': 'echo evil > @SLOT@/file.txt',
    'another slot is found beside this one': 'cat ../slots/*/file.txt',
    'another slot is removed': 'rm -rf @SLOT@',
    'another slot is reached by a link': 'ln -s @SLOT@ theirs && echo evil > theirs/planted',
  }),
  ...family('home of the user', {
    'a key is read': 'cat @USER@/.ssh/id_ed25519',
    'a key is read by the variable': 'cat $HOME/.ssh/*',
    'a key is read by the tilde': 'cat ~/.aws/credentials ~/.netrc ~/.npmrc',
    'a start file of the shell is written': 'echo "touch x" >> @USER@/.bashrc; true',
    'a config of git is written': 'git config --global core.pager "touch x"',
    'a program is put on the PATH': 'mkdir -p ~/bin ~/.local/bin && cp run.sh ~/.local/bin/git',
    'a key is added for logins': 'mkdir -p ~/.ssh && echo key >> ~/.ssh/authorized_keys',
  }),
  ...family('processes', {
    'the environment of a bystander is read': 'tr "\\0" "\\n" < /proc/@PID@/environ',
    'all environments are read': 'cat /proc/[0-9]*/environ | tr "\\0" "\\n" | grep -a MARK',
    'the root of a bystander is walked': 'cat /proc/@PID@/root@OUT@/secret.txt',
    'the folder of a bystander is walked': 'cat /proc/@PID@/cwd/secret.txt',
    'the folder of the parent is walked':
      'for p in /proc/[0-9]*; do cat $p/cwd/secret.txt $p/root@OUT@/secret.txt; done',
    'ps shows environments': 'ps axeww',
    'a bystander is ended': 'kill -9 @PID@',
  }),
  ...family(
    'processes that rarely can be had',
    {
      'a debugger attaches': 'gdb -p @PID@ -batch -ex "print (char*)environ" ; gdb -p 1 -batch -ex quit',
      'the root of the first process is walked': 'cat /proc/1/root@OUT@/secret.txt',
      'a tracer attaches': 'timeout 2 strace -p @PID@',
      'memory is read': 'dd if=/proc/@PID@/mem bs=1 count=1 | od',
    },
    false,
  ),
  ...family(
    'escape',
    {
      'setsid starts a session': 'setsid sleep @NAP@ & sleep 0.05',
      'nohup ignores hang-ups': 'nohup sleep @NAP@ > /dev/null 2>&1 &',
      'disown forgets a job': 'sleep @NAP@ > /dev/null 2>&1 & disown -a',
      'a double fork leaves its parent': '( ( sleep @NAP@ & ) & )',
      'a daemon closes everything': 'python3 -c "@DAEMON@" @NAP@',
      'a daemon clears its environment': 'env -i setsid -f sleep @NAP@',
      'a pile of shells starts one': 'sh -c "sh -c \\"setsid sh -c \\\\\\"exec sleep @NAP@\\\\\\" &\\" &" &',
      'a process ignores signals': 'sh -c "trap \'\' TERM INT HUP; sleep @NAP@" > /dev/null 2>&1 &',
      'a process stops itself': 'setsid sh -c "kill -STOP \\$\\$; sleep @NAP@" > /dev/null 2>&1 &',
      'a coprocess stays': 'coproc sleep @NAP@; true',
      'a process takes another name': 'setsid bash -c "exec -a kworker sleep @NAP@" > /dev/null 2>&1 &',
      'at plans a command': 'echo "touch @CAN@/at" | at now',
      'cron takes a command': 'test -w /var/spool/cron/crontabs && @GOT@',
      'a file of cron is written': 'touch /etc/cron.d/planted && @GOT@',
      'systemd runs a command': 'systemd-run --user touch @CAN@/systemd; systemd-run touch @CAN@/systemd',
      'a terminal multiplexer stays': 'tmux -L x new -d "sleep @NAP@"; screen -dmS x sleep @NAP@',
      'the first process is ended': 'kill -9 1; kill -9 $PPID; setsid sleep @NAP@ &',
    },
    false,
  ),
  ...family('socket', {
    'the agent of ssh is reached': 'SSH_AUTH_SOCK=@SOCKETS@/agent ssh-add -l; python3 -c "@UNIX@" @SOCKETS@/agent',
    'docker is reached': 'curl -s --max-time 2 --http0.9 --unix-socket @SOCKETS@/docker http://x/info',
    'the message bus is reached': 'python3 -c "@UNIX@" @SOCKETS@/bus',
    'an abstract socket is reached': 'python3 -c "@ABSTRACT@" @NAME@',
    'a socket is reached by a link': 'ln -s @SOCKETS@ s && python3 -c "@UNIX@" s/docker',
    'a socket is reached through /proc': 'python3 -c "@UNIX@" /proc/self/root@SOCKETS@/docker',
  }),
  ...family(
    'socket of this machine',
    {
      'the real docker is asked': 'curl -s --max-time 2 --unix-socket /var/run/docker.sock http://x/info && @GOT@',
      'the real bus is asked': 'ls /run/dbus/system_bus_socket /run/systemd/private && @GOT@',
      'X11 is asked': 'ls /tmp/.X11-unix/* && @GOT@',
      'a name is resolved': 'getent hosts example.com && @GOT@',
      'the metadata service is asked': 'curl -s --max-time 2 http://169.254.169.254/ && @GOT@',
      'a packet is sent':
        "python3 -c \"import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 9))\" && @GOT@",
      'a raw socket is opened': 'python3 -c "import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)" && @GOT@',
      'the host of a virtual machine is asked':
        'python3 -c "import socket; socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)" && @GOT@',
    },
    false,
  ),
  ...family(
    'descriptor',
    {
      'inherited descriptors are read': 'for n in 3 4 5 6 7 8 9 10 11 12 20 30; do cat <&$n; done',
      'inherited descriptors are written':
        'for n in 3 4 5 6 7 8 9 10; do echo "{\\"exit-code\\": 0}" >&$n; done; exit 7',
      'descriptors of the first process are opened':
        'for f in /proc/1/fd/*; do timeout 1 head -c 100 $f; echo x > $f; done',
    },
    false,
  ),
  ...family(
    'mount and namespace',
    {
      'a file system is mounted': 'mount -t tmpfs none /usr && @GOT@',
      'a folder is mounted over another': 'mount --bind / . && @GOT@',
      'a namespace is made': 'unshare -Ur true && @GOT@',
      'a namespace of mounts is made': 'unshare -Urm sh -c "mount -t proc proc /proc && ps ax" && @GOT@',
      'a namespace is entered': 'nsenter -t @PID@ -m cat @OUT@/secret.txt; nsenter -t 1 -m -U true && @GOT@',
      'a sandbox is made in the sandbox': 'bwrap --bind / / true && @GOT@',
      'the root is changed': 'chroot / true && @GOT@',
      'the root of the box is written': 'touch /planted && @GOT@',
      'a system folder is written': 'touch /usr/planted /opt/planted; test -e /usr/planted && @GOT@',
      'a read-only mount is taken away': 'umount -l /etc && @GOT@',
      'a kernel setting is written': 'f=/proc/sys/kernel/core_pattern; v=$(cat $f) && echo "$v" > $f && @GOT@',
      'kernel settings can be written':
        'find /proc -path "/proc/[0-9]*" -prune -o -type f -writable -print 2>/dev/null | grep -q proc && @GOT@',
      'the magic key is pressed': 'exec 9> /proc/sysrq-trigger && @GOT@',
    },
    false,
  ),
  ...family(
    'device',
    {
      'a device is made': 'mknod disk b 8 0 && @GOT@',
      'a disk is read':
        'for d in /dev/vda /dev/sda /dev/nvme0n1 /dev/mem /dev/kmsg; do head -c 1 $d > /dev/null && @GOT@; done',
      'keys are typed into the terminal':
        "python3 -c \"import fcntl; fcntl.ioctl(open('/dev/tty'), 0x5412, b'x')\" && @GOT@",
      'a kernel module is loaded': 'modprobe dummy && @GOT@; insmod x.ko && @GOT@',
      'a kernel log is read': 'dmesg > /dev/null && @GOT@',
      'the owner of a file is changed': 'cp /bin/sh s && chown 12345 s && @GOT@',
      'a program becomes another user': 'su nobody -s /bin/sh -c true && @GOT@; sudo -n true && @GOT@',
    },
    false,
  ),
];
