# A worker with Gearman::Worker. Its command line and output are those of peers/contract.py.
use strict;
use warnings;
use Gearman::Worker;

$| = 1;
my ($host, $port, $prefix) = @ARGV;
# With TLS where the environment names the files for it.
my $server = "$host:$port";
if ($ENV{GEARMAN_TLS_CA}) {
    $server = {
        host      => $host,
        port      => $port,
        use_ssl   => 1,
        ca_file   => $ENV{GEARMAN_TLS_CA},
        cert_file => $ENV{GEARMAN_TLS_CERTIFICATE},
        key_file  => $ENV{GEARMAN_TLS_KEY},
    };
}
my $worker = Gearman::Worker->new(job_servers => [$server], client_id => "perl-worker");

my %functions = (
    reverse => sub { scalar reverse $_[0]->arg },
    empty   => sub { "" },
    zero    => sub { 0 },
    misstep => sub { $worker->send_work_status($_[0], 1, 4); return "done" },
    fail    => sub { undef },
    die     => sub { die "it broke\n" },
    report  => sub {
        my $job = shift;
        $job->set_status(1, 4);
        $worker->send_work_data($job, "part");
        $worker->send_work_warning($job, "careful");
        $job->set_status(4, 4);
        return "whole";
    },
    gate => sub {
        my $job = shift;
        print "running\t", unpack("H*", $job->arg), "\n";
        <STDIN>;
        return $job->arg;
    },
);

$worker->register_function("$prefix-$_" => $functions{$_}) for sort keys %functions;
$worker->register_function("$prefix-limited" => 1, $functions{gate});
print "ready\t\n";
$worker->work while 1;
