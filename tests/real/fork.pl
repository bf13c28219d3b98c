use POSIX ":sys_wait_h";
$| = 1;
my $caught = 0;
$SIG{USR1} = sub { $caught++ };
for my $i (1 .. 5) {
    pipe(my $r, my $w) or die;
    my $pid = fork() // die;
    if (!$pid) {
        close $r;
        print $w "child $i says ", $i ** 3, "\n";
        exit $i;
    }
    close $w;
    print <$r>;
    waitpid $pid, 0;
    print "status ", $? >> 8, "\n";
    kill USR1 => $$;
}
print "caught $caught\n", `echo backquote; exit 3`, $? >> 8, "\n";
local $SIG{ALRM} = sub { die "alarm\n" };
eval { alarm 1; select undef, undef, undef, 20; };
print $@;
print "done\n";
