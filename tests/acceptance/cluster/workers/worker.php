<?php
// A worker of the servers on the command line; it adds a line with the payload of each job to a file.
[, $path] = $argv;
$worker = new GearmanWorker();
$worker->setTimeout(500);
foreach (array_slice($argv, 2) as $server) {
    [$host, $port] = explode(':', $server);
    $worker->addServer($host, (int) $port);
}
$worker->addFunction('note', function (GearmanJob $job) use ($path) {
    file_put_contents($path, $job->workload() . "\n", FILE_APPEND | LOCK_EX);
    return 'noted';
});
while (true) {
    @$worker->work();  // a server that is down is an error that passes
    if (!in_array($worker->returnCode(), [GEARMAN_SUCCESS, GEARMAN_TIMEOUT], true)) {
        usleep(50000);
    }
}
