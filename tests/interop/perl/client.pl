# A client with Gearman::Client. Its command line and output are those of peers/contract.py.
use strict;
use warnings;
use Gearman::Client;

$| = 1;
my ($host, $port, $verb, $function, $unique, $priority) = @ARGV;
binmode STDIN;
my $payload = do { local $/; <STDIN> };
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
my $client = Gearman::Client->new(job_servers => [$server], exceptions => 1);

sub tell_event {
    my ($event, $data) = @_;
    print "$event\t", unpack("H*", $data), "\n";
}

sub options {
    my %callbacks = @_;
    return {
        priority => $priority,
        (length $unique ? (uniq => $unique) : ()),
        %callbacks,
    };
}

sub run {
    my $tasks = $client->new_task_set;
    $tasks->add_task(
        $function, $payload,
        options(
            on_status    => sub { tell_event("status",    "$_[0]/$_[1]") },
            on_data      => sub { tell_event("data",      ${ $_[0] }) },
            on_warning   => sub { tell_event("warning",   ${ $_[0] }) },
            on_complete  => sub { tell_event("complete",  ${ $_[0] }) },
            on_exception => sub { tell_event("exception", $_[0]) },
            on_fail      => sub { tell_event("fail",      "") },
        )
    );
    $tasks->wait(timeout => 60);
}

# The library's handle is "host:port//handle".
sub background {
    my $handle = $client->dispatch_background($function, $payload, options());
    tell_event("created", (split m{//}, $handle)[1]);
}

sub batch {
    my @results;
    my $tasks = $client->new_task_set;
    my @lines = split /\n/, $payload;
    for my $index (0 .. $#lines) {
        $tasks->add_task($function, $lines[$index],
            { on_complete => sub { $results[$index] = ${ $_[0] } } });
    }
    $tasks->wait(timeout => 60);
    tell_event("complete", $_) for @results;
}

sub status {
    my $status = $client->get_status("$host:$port//$function");
    my ($numerator, $denominator) = @{ $status->progress || [0, 0] };
    tell_event("status",
        ($status->known ? 1 : 0) . " " . ($status->running ? 1 : 0) . " $numerator/$denominator");
}

# What the other verbs do by task sets, in one call; `high_priority` is the old word for `priority => "high"`.
sub do_task {
    my $result = $client->do_task($function, $payload, { high_priority => 1 });
    tell_event("complete", $$result);
}

# One set of different tasks, whose ends come in any order; the function is a worker's prefix.
sub mixed {
    my $tasks = $client->new_task_set;
    for my $name (qw(reverse fail die report)) {
        $tasks->add_task(
            "$function-$name",
            $payload,
            {
                on_status    => sub { tell_event("$name status",   "$_[0]/$_[1]") },
                on_data      => sub { tell_event("$name data",     ${ $_[0] }) },
                on_warning   => sub { tell_event("$name warning",  ${ $_[0] }) },
                on_complete  => sub { tell_event("$name complete", ${ $_[0] }) },
                on_exception => sub { tell_event("$name exception", "") },
                on_fail      => sub { tell_event("$name fail",      "") },
            }
        );
    }
    $tasks->wait(timeout => 60);
}

sub retry {
    my $tasks = $client->new_task_set;
    $tasks->add_task(
        $function, $payload,
        {
            retry_count => 2,
            on_retry    => sub { tell_event("retry",    $_[0]) },
            on_complete => sub { tell_event("complete", ${ $_[0] }) },
            on_fail     => sub { tell_event("fail",     "") },
        }
    );
    $tasks->wait(timeout => 60);
}

# The library puts prefix, tab and function together.
sub prefixed {
    $client->prefix("space");
    background();
}

sub server_status {
    my $row = $client->get_job_server_status->{"$host:$port"}{$function};
    tell_event("row", "$row->{queued} $row->{running} $row->{capable}");
}

{
    run           => \&run,
    background    => \&background,
    batch         => \&batch,
    status        => \&status,
    do_task       => \&do_task,
    mixed         => \&mixed,
    retry         => \&retry,
    prefixed      => \&prefixed,
    server_status => \&server_status,
}->{$verb}->();
