<?php
// A client with PHP's gearman extension. Its command line and output are those of peers/contract.py.

[, $host, $port, $verb, $function, $unique, $priority] = $argv;
$payload = stream_get_contents(STDIN);
$client = new GearmanClient();
$client->addServer($host, (int) $port);
$client->setTimeout(60000);

function tell(string $event, string $data): void
{
    echo $event, "\t", bin2hex($data), "\n";
}

$run = function () use ($client, $function, $payload, $unique, $priority): void {
    $client->setStatusCallback(
        fn ($task) => tell('status', $task->taskNumerator() . '/' . $task->taskDenominator())
    );
    $client->setDataCallback(fn ($task) => tell('data', $task->data()));
    $client->setWarningCallback(fn ($task) => tell('warning', $task->data()));
    $client->setCompleteCallback(fn ($task) => tell('complete', $task->data()));
    $client->setExceptionCallback(fn ($task) => tell('exception', $task->data()));
    $client->setFailCallback(fn ($task) => tell('fail', ''));
    $add = ['high' => 'addTaskHigh', 'normal' => 'addTask', 'low' => 'addTaskLow'][$priority];
    $client->$add($function, $payload, null, $unique === '' ? null : $unique);
    $client->runTasks();
};

$background = function () use ($client, $function, $payload, $unique, $priority): void {
    $do = ['high' => 'doHighBackground', 'normal' => 'doBackground', 'low' => 'doLowBackground'][$priority];
    tell('created', $client->$do($function, $payload, $unique === '' ? null : $unique));
};

$batch = function () use ($client, $function, $payload): void {
    $results = [];
    $client->setCompleteCallback(function ($task, $index) use (&$results): void {
        $results[(int) $index] = $task->data();
    });
    foreach (explode("\n", rtrim($payload, "\n")) as $index => $line) {
        $client->addTask($function, $line, (string) $index);
    }
    $client->runTasks();
    ksort($results);
    foreach ($results as $result) {
        tell('complete', $result);
    }
};

$status = function () use ($client, $function): void {
    [$known, $running, $numerator, $denominator] = $client->jobStatus($function);
    tell('status', (int) $known . ' ' . (int) $running . " $numerator/$denominator");
};

// The unique key stands in the place of the function: GET_STATUS_UNIQUE.
$statusOfUnique = function () use ($client, $function): void {
    [$known, $running, $numerator, $denominator] = $client->jobStatusByUniqueKey($function);
    tell('status', (int) $known . ' ' . (int) $running . " $numerator/$denominator");
};

$ping = fn () => tell('pong', $client->ping($payload) ? 'true' : 'false');

[
    'run' => $run,
    'background' => $background,
    'batch' => $batch,
    'status' => $status,
    'status-of-unique' => $statusOfUnique,
    'ping' => $ping,
][$verb]();
