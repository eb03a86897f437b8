# A worker of the servers on the command line; it adds a line with the payload of each job to a file.
use strict;
use warnings;
use Gearman::Worker;
use IO::Handle;

my ($path, @servers) = @ARGV;
open(my $log, '>>', $path) or die $!;
$log->autoflush(1);
my $worker = Gearman::Worker->new;
$worker->job_servers(@servers);
$worker->register_function(note => sub {
    my $job = shift;
    print $log $job->arg . "\n";
    return 'noted';
});
$worker->work while 1;
