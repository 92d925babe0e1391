package parts

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// Ingress is nginx, configured from the Ingress objects of deploy/ as by an ingress controller.
func Ingress(w World) *Process {
	return &Process{
		Name: "ingress", Log: w.Lab.Log("ingress"), Port: 80,
		Args:  []string{"/usr/sbin/nginx", "-c", nginxFile(w), "-e", "stderr", "-g", "daemon off;"},
		Ready: tcpReady(w.Address, 80),
	}
}

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
	var ingresses networkingv1.IngressList
	var services corev1.ServiceList
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
func nginxConfig(address string, ingresses []networkingv1.Ingress, services []corev1.Service) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "user www-data;\nworker_processes 1;\npid /run/nginx.pid;\nevents {}\nhttp {\n  access_log /dev/stderr;\n"+
		"  proxy_temp_path /run/nginx-proxy;\n  client_body_temp_path /run/nginx-body;\n"+
		"  fastcgi_temp_path /run/nginx-none;\n  uwsgi_temp_path /run/nginx-none;\n  scgi_temp_path /run/nginx-none;\n"+
		"  server { listen %[1]s:80 default_server; return 404; }\n", address)
	for _, ingress := range ingresses {
		for _, rule := range ingress.Spec.Rules {
			fmt.Fprintf(&b, "  server {\n    listen %s:80;\n    server_name %s;\n", address, rule.Host)
			for _, path := range rule.HTTP.Paths {
				modifier := ""
				if path.PathType != nil && *path.PathType == networkingv1.PathTypeExact {
					modifier = "= "
				}
				to, err := backend(ingress.Namespace, path.Backend.Service, services)
				if err != nil {
					return "", fmt.Errorf("ingress %s/%s: %w", ingress.Namespace, ingress.Name, err)
				}
				fmt.Fprintf(&b, "    location %s%s { proxy_pass http://%s; proxy_set_header Host $host; }\n", modifier, path.Path, to)
			}
			b.WriteString("    location / { return 404; }\n  }\n")
		}
	}
	b.WriteString("}\n")
	return b.String(), nil
}

// backend returns the address of a Service's port, given by name or number.
func backend(namespace string, to *networkingv1.IngressServiceBackend, services []corev1.Service) (string, error) {
	for _, service := range services {
		if service.Namespace != namespace || service.Name != to.Name {
			continue
		}
		for _, port := range service.Spec.Ports {
			if to.Port.Name != "" && port.Name == to.Port.Name || to.Port.Number != 0 && port.Port == to.Port.Number {
				return fmt.Sprintf("%s:%d", service.Spec.ClusterIP, port.Port), nil
			}
		}
		return "", fmt.Errorf("service %s has no port %s", to.Name, to.Port.String())
	}
	return "", fmt.Errorf("no service %s", to.Name)
}
