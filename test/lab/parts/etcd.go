package parts

import (
	"fmt"
)

// Etcd keeps the apiserver's objects. It does not wait for the disk: a lab's data need not survive the machine.
func Etcd(w World) *Process {
	client := fmt.Sprintf("http://127.0.0.1:%d", w.Ports.EtcdClient)
	peer := fmt.Sprintf("http://127.0.0.1:%d", w.Ports.EtcdPeer)
	return &Process{
		Name: "etcd", Log: w.Lab.Log("etcd"), Port: w.Ports.EtcdClient,
		Args: []string{"/usr/bin/etcd", "--data-dir", w.Lab.Path("etcd"), "--unsafe-no-fsync",
			"--listen-client-urls", client, "--advertise-client-urls", client,
			"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default=" + peer,
			"--log-level", "warn"},
		Ready: httpReady(client+"/health", ""),
	}
}
