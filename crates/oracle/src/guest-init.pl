#!/usr/bin/perl
# The first process of the guest. Its root is the host's file tree, read-only; the one writable place is the work folder, whose host
# path comes in $OUT. It attaches the images, runs job.sh in the work folder and leaves its exit code in job.rc.
#
# It is one process, for in a guest the start of a program costs more than most of these steps. Perl is there wherever dpkg is.
use strict;

# The numbers of system calls on x86-64, and of what they are asked for.
my ($SYSLOG, $SYNC, $MOUNT, $REBOOT, $FINIT_MODULE) = (103, 162, 165, 169, 313);
my ($READ_ALL, $HALT) = (3, 0xcdef0123);
# The requests of loop devices.
my ($SET_FD, $CLEAR_FD, $SET_BLOCK_SIZE, $ADD) = (0x4c00, 0x4c01, 0x4c09, 0x4c80);

sub leave {
    my ($path, $text) = @_;
    open my $file, '>', $path or return;
    print $file $text;
    close $file;
}

sub mounted {
    my ($type, $folder, $data) = @_;
    mkdir $folder;
    syscall($MOUNT, $type, $folder, $type, 0, $data) == 0 or die "mount $folder: $!\n";
}

# A module that is built into a kernel is no file there.
sub insert {
    my ($path, $options) = @_;
    open my $file, '<', $path or return '';
    return syscall($FINIT_MODULE, fileno $file, $options, 0) == 0 ? '' : "$path: $!\n";
}

# Each line of the file `images` is the size of the blocks and the path of an image; the first image is /dev/loop0.
sub attach {
    open my $images, '<', 'images' or return;
    open my $control, '+<', '/dev/loop-control' or die "/dev/loop-control: $!\n";
    my ($number, %folders) = (0);
    while (my $line = <$images>) {
        my ($block, $folder, $name) = $line =~ m{^(\d+) (.*)/([^/\n]+)$}s or die "images: $line";
        if (!exists $folders{$folder}) {
            $folders{$folder} = '/run/folder' . keys %folders;
            mounted('hostfs', $folders{$folder}, $folder);
        }
        ioctl $control, $ADD, $number or die "loop$number: $!\n";
        open my $device, '+<', "/dev/loop$number" or die "loop$number: $!\n";
        open my $image, '+<', "$folders{$folder}/$name" or die "$folder/$name: $!\n";
        ioctl $device, $SET_FD, fileno $image or die "$folder/$name: $!\n";
        $block == 512 or ioctl $device, $SET_BLOCK_SIZE, $block + 0 or die "$folder/$name: $!\n";
        $number++;
    }
}

# All loop devices, those that the job has attached too: what they hold is written to their files.
sub detach {
    opendir my $blocks, '/sys/block' or return;
    for my $name (grep { /^loop/ && -e "/sys/block/$_/loop" } readdir $blocks) {
        open my $device, '<', "/dev/$name" or next;
        ioctl $device, $CLEAR_FD, 0;
    }
}

sub job {
    my $process = fork // die "fork: $!\n";
    if ($process == 0) {
        open STDOUT, '>', 'job.log' or die "job.log: $!\n";
        open STDERR, '>&', \*STDOUT or die "job.log: $!\n";
        exec 'bash', 'job.sh' or die "bash: $!\n";
    }
    waitpid $process, 0;
    return $? & 127 ? 128 + ($? & 127) : $? >> 8;
}

%ENV = (%ENV, PATH => '/usr/sbin:/usr/bin:/sbin:/bin', HOME => '/', LC_ALL => 'C', MDADM_NO_UDEV => 1, TMPDIR => '/run/tmp');
mounted('proc', '/proc', '');
mounted('sysfs', '/sys', '');
mounted('tmpfs', '/run', 'size=75%');
mkdir "/run/$_" for 'mdadm', 'tmp';
mounted('hostfs', '/run/out', $ENV{OUT});
chdir '/run/out';

open my $kernel, '<', '/proc/sys/kernel/osrelease';
chomp(my $release = <$kernel>);
my $said = insert("/usr/lib/uml/modules/$release/kernel/drivers/block/loop.ko", 'max_loop=0');
my @md = ((map { "drivers/md/$_" } 'md-mod', 'dm-mod', 'raid0', 'raid1', 'raid10', 'linear'), 'crypto/async_tx/async_tx', 'crypto/xor',
    (map { "crypto/async_tx/async_$_" } 'memcpy', 'xor', 'pq', 'raid6_recov'), 'drivers/md/raid456');
$said .= insert("/usr/lib/uml/modules/$release/kernel/$_.ko", '') for @md;
leave('modules.log', $said);
leave("/proc/sys/dev/raid/speed_limit_$_", "1000000\n") for 'max', 'min';
leave('/proc/sys/kernel/printk', "3\n");

# The loopback device comes up: SIOCSIFFLAGS with IFF_UP, IFF_LOOPBACK and IFF_RUNNING.
socket my $any, 2, 2, 0 or die "socket: $!\n";
my $request = pack 'a16 s x14', 'lo', 0x49;
ioctl $any, 0x8914, $request;

my $code = eval { attach(); job() };
leave('job.log', $@) if $@;
$code //= 1;
detach();
my $messages = "\0" x (1 << 18);
my $length = syscall($SYSLOG, $READ_ALL, $messages, length $messages);
leave('dmesg.log', substr $messages, 0, $length);
leave('job.rc', "$code\n");
syscall($SYNC);
syscall($REBOOT, 0xfee1dead, 672274793, $HALT, 0);
