my %count;
open(my $f, "<", $ARGV[0]) or die;
while (<$f>) { $count{$_}++ for split; }
close $f;
my @top = sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count;
printf "%s %d\n", $_, $count{$_} for @top[0 .. 40];
my $text = join ",", map { $_ * $_ } 1 .. 20000;
my $n = () = $text =~ /(\d)\1/g;
print "$n\ndone\n";
