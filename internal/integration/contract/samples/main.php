<?php

require __DIR__ . '/sample.php';

while (($line = fgets(STDIN)) !== false) {
    [, , $id, $timestamp, $signatures, $body] = explode("\t", rtrim($line, "\n"));
    echo verify($id ?: null, $timestamp ?: null, $signatures ?: null, base64_decode($body)) ? "valid\n" : "invalid\n";
}
