package store_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// A backup is a store like any other: open it, or put it in the place of a lost file.
func ExampleFile_Backup() {
	directory, err := os.MkdirTemp("", "webhooks")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(directory)
	webhooks, err := store.OpenFile(filepath.Join(directory, "webhooks.log"), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer webhooks.Close()

	ctx := context.Background()
	change := webhookcfg.SetChange("acme", webhookcfg.Entity("e1"), egress.NewURL("https://hooks.example.com/in?token=t0ken"))
	if err := webhooks.Apply(ctx, change); err != nil {
		log.Fatal(err)
	}
	backup := filepath.Join(directory, "backup.log")
	if err := webhooks.Backup(ctx, backup); err != nil {
		log.Fatal(err)
	}

	restored, err := store.OpenFile(backup, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer restored.Close()
	hook, err := restored.Resolve(ctx, "acme", "e1")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(hook.Source, hook.URL)
	// Output: override https://hooks.example.com
}

// Call Healthy from your health check, and make metrics of Stats. Here they show that a part
// of the file is superseded.
func ExampleFile_Healthy() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	file, err := store.OpenFile(filepath.Join(dir, "webhooks.jsonl"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	all := webhookcfg.SetChange("acme", webhookcfg.All(), egress.NewURL("https://hooks.example.com/in"))
	fmt.Println(file.Apply(ctx, all), file.Apply(ctx, all), file.Healthy(ctx))
	s := file.Stats()
	fmt.Println(s.Changes, s.Bytes > s.LiveBytes, file.Close())
	// Output:
	// <nil> <nil> <nil>
	// 2 true <nil>
}
