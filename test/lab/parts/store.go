package parts

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// storeConfig has places for the store's directory and its address. Anybody may read and write everything below /,
// nobody anything below /refused, and what is below /proxies and /tokens only who shows a certificate of the lab's
// authority or StoreToken. The log says which certificate it was.
const storeConfig = `worker_processes 1;
pid %[1]s/pid;
events {}
http {
  log_format shown '$request_method $uri $status $ssl_client_serial';
  access_log %[1]s/access.log shown;
  client_body_temp_path %[1]s/body;
  proxy_temp_path %[1]s/none;
  fastcgi_temp_path %[1]s/none;
  uwsgi_temp_path %[1]s/none;
  scgi_temp_path %[1]s/none;
  server {
    listen %[2]s ssl;
    ssl_certificate %[1]s/server.crt;
    ssl_certificate_key %[1]s/server.key;
    ssl_client_certificate %[3]s;
    ssl_verify_client optional;
    client_max_body_size 0;
    root %[1]s/files;
    location / {
      dav_methods PUT DELETE;
      create_full_put_path on;
    }
    location /refused { return 403; }
    location /proxies {
      if ($ssl_client_verify != SUCCESS) { return 403; }
      dav_methods PUT;
      create_full_put_path on;
    }
    location /tokens {
      if ($http_authorization != "Bearer %[4]s") { return 403; }
      dav_methods PUT;
      create_full_put_path on;
    }
  }
}
`

// StoreToken is the token that the store wants to see.
const StoreToken = "the-token-of-the-store" // #nosec G101 -- of a lab

// Store is an nginx from which jobs get files and to which they write them, by GET and PUT over https. It is for tests
// that ask for it: a lab comes up without it.
func Store(w World) (*Process, error) {
	if _, err := directory("www-data", 0o755, storeFile(w, "files")); err != nil {
		return nil, err
	}
	dir, err := directory("www-data", 0o755, w.Lab.Path("store"))
	if err != nil {
		return nil, err
	}
	address := fmt.Sprintf("%s:%d", w.Address, w.Ports.Store)
	config := storeFile(w, "nginx.conf")
	if err := os.WriteFile(
		config,
		fmt.Appendf(nil, storeConfig, dir, address, ReceiverCA(w), StoreToken),
		0o644,
	); err != nil {
		return nil, err
	}
	return &Process{
		Name: "store", Log: w.Lab.Log("store"), Port: w.Ports.Store, Spare: true, Account: "www-data",
		Args:  []string{"/usr/sbin/nginx", "-c", config, "-e", "stderr", "-g", "daemon off;"},
		Ready: tcpReady(w.Address, w.Ports.Store),
	}, nil
}

func storeFile(w World, name string) string { return w.Lab.Path("store", name) }

// trustAuthority makes the directory in which HTCondor's transfer plugins look for authorities, as sites have it below
// /etc/grid-security: each in a file that is named by its hash.
func trustAuthority(ctx context.Context, w World, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	hash, err := command(ctx, nil, "", "openssl", "x509", "-noout", "-hash", "-in", ReceiverCA(w))
	if err != nil {
		return err
	}
	text, err := os.ReadFile(ReceiverCA(w))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, strings.TrimSpace(hash)+".0"), text, 0o644)
}
