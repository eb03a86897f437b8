<?php
// A worker with PHP's gearman extension. Its command line and output are those of peers/contract.py.

[, $host, $port, $prefix] = $argv;
$worker = new GearmanWorker();
$worker->addServer($host, (int) $port);
$worker->setId('php-worker');

$functions = [
    'reverse' => fn ($job) => strrev($job->workload()),
    'empty' => fn ($job) => '',
    'unique' => fn ($job) => $job->unique(),
    'report' => function ($job) {
        $job->sendStatus(1, 4);
        $job->sendData('part');
        $job->sendWarning('careful');
        $job->sendStatus(4, 4);
        return 'whole';
    },
    'fail' => fn ($job) => $job->sendFail(),
    'die' => fn ($job) => $job->sendException('it broke'),
    'gate' => function ($job) {
        echo "running\t", bin2hex($job->workload()), "\n";
        fgets(STDIN);
        return $job->workload();
    },
];
foreach ($functions as $name => $function) {
    $worker->addFunction("$prefix-$name", $function);
}
echo "ready\t\n";
while ($worker->work()) {
}
fwrite(STDERR, 'work: ' . $worker->error() . "\n");
exit(1);
