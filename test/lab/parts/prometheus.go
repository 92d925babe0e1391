package parts

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// prometheusConfig has places for the clone of htcd's sources and for htcd's port.
const prometheusConfig = `global:
  scrape_interval: 1s
  evaluation_interval: 1s
rule_files:
  - %s/deploy/monitoring/alerts.yaml
scrape_configs:
  - job_name: htcd
    static_configs:
      - targets: [127.0.0.1:%d]
`

// Prometheus scrapes htcd every second and evaluates the rules of deploy/monitoring. It is for tests that ask for it: a
// lab comes up without it.
func Prometheus(w World) (*Process, error) {
	dir, err := directory("alice", 0o755, w.Lab.Path("prometheus"))
	if err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(config, fmt.Appendf(nil, prometheusConfig, w.Clone, w.Ports.Health), 0o644); err != nil {
		return nil, err
	}
	address := fmt.Sprintf("127.0.0.1:%d", w.Ports.Prometheus)
	return &Process{
		Name:    "prometheus",
		Log:     w.Lab.Log("prometheus"),
		Port:    w.Ports.Prometheus,
		Spare:   true,
		Account: "alice",
		Args: []string{
			"/usr/bin/prometheus",
			"--config.file=" + config,
			"--storage.tsdb.path=" + filepath.Join(dir, "data"),
			"--web.listen-address=" + address,
			"--log.level=warn",
		},
		Ready: httpReady("http://"+address+"/-/ready", ""),
		Grace: 10 * time.Second,
	}, nil
}
