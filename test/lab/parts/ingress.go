package parts

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// Ingress is nginx, configured from the Ingress objects of deploy/ as by an ingress controller.
func Ingress(w World) *Process {
	return &Process{
		Name: "ingress", Log: w.Lab.Log("ingress"), Port: 80,
		Args:  []string{"/usr/sbin/nginx", "-c", nginxFile(w), "-e", "stderr", "-g", "daemon off;"},
		Ready: tcpReady(w.Address, 80),
	}
}

// The fields of Ingresses and Services that nginx's configuration is made of. Kubernetes' own types would double the
// time that it takes to build the lab's program.
type (
	ingressObject struct {
		Metadata objectMeta `json:"metadata"`
		Spec     struct {
			Rules []ingressRule `json:"rules"`
		} `json:"spec"`
	}
	ingressRule struct {
		Host string `json:"host"`
		HTTP struct {
			Paths []ingressPath `json:"paths"`
		} `json:"http"`
	}
	ingressPath struct {
		Path     string `json:"path"`
		PathType string `json:"pathType"`
		Backend  struct {
			Service backendService `json:"service"`
		} `json:"backend"`
	}
	backendService struct {
		Name string      `json:"name"`
		Port servicePort `json:"port"`
	}
	serviceObject struct {
		Metadata objectMeta `json:"metadata"`
		Spec     struct {
			ClusterIP string `json:"clusterIP"`
			Ports     []struct {
				Name string `json:"name"`
				Port int32  `json:"port"`
			} `json:"ports"`
		} `json:"spec"`
	}
	// servicePort has one of the two.
	servicePort struct {
		Name   string `json:"name"`
		Number int32  `json:"number"`
	}
	objectMeta struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	}
	list[T any] struct {
		Items []T `json:"items"`
	}
)

func nginxFile(w World) string { return w.Lab.Path("node", "nginx.conf") }

// ConfigureIngress writes nginx's configuration for the existing Ingresses.
func ConfigureIngress(ctx context.Context, w World) error {
	read := func(into any, args ...string) error {
		text, err := kubectl(ctx, w, "", append([]string{"get", "-o", "json", "--all-namespaces"}, args...)...)
		if err != nil {
			return err
		}
		return json.Unmarshal([]byte(text), into)
	}
	var ingresses list[ingressObject]
	var services list[serviceObject]
	if err := read(&ingresses, "ingresses"); err != nil {
		return err
	}
	if err := read(&services, "services"); err != nil {
		return err
	}
	text, err := nginxConfig(w.Address, ingresses.Items, services.Items)
	if err != nil {
		return err
	}
	return os.WriteFile(nginxFile(w), []byte(text), 0o644)
}

// nginxConfig returns a configuration with a server for each host and a location for each path.
func nginxConfig(address string, ingresses []ingressObject, services []serviceObject) (string, error) {
	var b strings.Builder
	fmt.Fprintf(
		&b,
		"user www-data;\nworker_processes 1;\npid /run/nginx.pid;\nevents {}\nhttp {\n  access_log /dev/stderr;\n"+
			"  proxy_temp_path /run/nginx-proxy;\n  client_body_temp_path /run/nginx-body;\n"+
			"  fastcgi_temp_path /run/nginx-none;\n  uwsgi_temp_path /run/nginx-none;\n  scgi_temp_path /run/nginx-none;\n"+
			"  server { listen %[1]s:80 default_server; return 404; }\n",
		address,
	)
	for _, ingress := range ingresses {
		for _, rule := range ingress.Spec.Rules {
			fmt.Fprintf(&b, "  server {\n    listen %s:80;\n    server_name %s;\n", address, rule.Host)
			for _, path := range rule.HTTP.Paths {
				modifier := ""
				if path.PathType == "Exact" {
					modifier = "= "
				}
				to, err := backend(ingress.Metadata.Namespace, path.Backend.Service, services)
				if err != nil {
					return "", fmt.Errorf("ingress %s/%s: %w", ingress.Metadata.Namespace, ingress.Metadata.Name, err)
				}
				fmt.Fprintf(
					&b,
					"    location %s%s { proxy_pass http://%s; proxy_set_header Host $host; }\n",
					modifier,
					path.Path,
					to,
				)
			}
			b.WriteString("    location / { return 404; }\n  }\n")
		}
	}
	b.WriteString("}\n")
	return b.String(), nil
}

// backend returns the address of a Service's port, given by name or number.
func backend(namespace string, to backendService, services []serviceObject) (string, error) {
	for _, service := range services {
		if service.Metadata.Namespace != namespace || service.Metadata.Name != to.Name {
			continue
		}
		for _, port := range service.Spec.Ports {
			if to.Port.Name != "" && port.Name == to.Port.Name || to.Port.Number != 0 && port.Port == to.Port.Number {
				return fmt.Sprintf("%s:%d", service.Spec.ClusterIP, port.Port), nil
			}
		}
		return "", fmt.Errorf("service %s has no port %+v", to.Name, to.Port)
	}
	return "", fmt.Errorf("no service %s", to.Name)
}
