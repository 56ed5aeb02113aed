package etcdcluster

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/embed"
)

// variable holds the description of the member that a process is to be.
const variable = "WEBHOOKCFG_ETCD_MEMBER"

// description is what a member has to know of itself.
type description struct {
	Name, Dir    string
	Client, Peer string // "http://host:port"
	Cluster      string // all members, "name=peer,…"
}

// RunMember returns in every process but those that [Start] started, which
// it turns into members.
func RunMember() {
	text, ok := os.LookupEnv(variable)
	if !ok {
		return
	}
	if err := run(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// run is a member until its standard input ends, which is when its parent does.
func run(text string) error {
	var d description
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return err
	}
	config, err := d.config()
	if err != nil {
		return err
	}
	server, err := embed.StartEtcd(config)
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	return <-server.Err()
}

func (d description) config() (*embed.Config, error) {
	client, err := url.Parse(d.Client)
	if err != nil {
		return nil, err
	}
	peer, err := url.Parse(d.Peer)
	if err != nil {
		return nil, err
	}
	c := embed.NewConfig()
	c.Name, c.Dir, c.InitialCluster = d.Name, filepath.Join(d.Dir, "data"), d.Cluster
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{*client}, []url.URL{*client}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{*peer}, []url.URL{*peer}
	c.LogLevel, c.LogOutputs = "warn", []string{filepath.Join(d.Dir, "log")}
	c.EnableGRPCGateway = false
	return c, nil
}
