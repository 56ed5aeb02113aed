<?php
// Calls the interface with PHP's curl; prints a line for each step.
declare(strict_types=1);

$receiver = getenv('RECEIVER');
$client = getenv('CLIENT');
$path = getenv('BASE') . '/api/v1/configure/configure-webhook';

function show(string $client, string $method, string $url, ?array $body = null): void
{
    $handle = curl_init($url);
    curl_setopt_array($handle, [
        CURLOPT_CUSTOMREQUEST => $method,
        CURLOPT_USERPWD => $client,
        CURLOPT_RETURNTRANSFER => true,
        CURLOPT_TIMEOUT => 30,
        CURLOPT_PROXY => '',
    ]);
    if ($body !== null) {
        curl_setopt($handle, CURLOPT_POSTFIELDS, json_encode($body, JSON_THROW_ON_ERROR));
        curl_setopt($handle, CURLOPT_HTTPHEADER, ['Content-Type: application/json']);
    }
    $response = json_decode((string) curl_exec($handle), true, 8, JSON_THROW_ON_ERROR);
    echo curl_getinfo($handle, CURLINFO_RESPONSE_CODE), ' ', $response['error'] ?? $response['message'] ?? $response['source'], "\n";
}

show($client, 'POST', $path, ['endpoint_id' => 'e1', 'webhook_url' => $receiver]);
show($client, 'GET', $path . '/e1');
show($client, 'DELETE', $path . '/e1');
show($client, 'POST', $path, ['webhook_url' => $receiver]);
show($client, 'DELETE', $path);
show($client, 'POST', $path, ['endpoint_id' => null, 'webhook_url' => $receiver]);
show($client . 'x', 'DELETE', $path);
show($client, 'POST', $path, ['endpoint_id' => 'e9', 'webhook_url' => $receiver]);
