package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/cli/ui"
)

func uiCommand() *cobra.Command {
	var at Connection
	var address string
	var port int
	var all, noBrowser bool
	c := &cobra.Command{
		Use:   "ui",
		Short: "Show HTCJobs, HTCWorkflows and HTCPools in a browser",
		Long: `Serve a page on this machine alone, with your kubeconfig, and open a browser where there is one. The page shows what you may read, of
all namespaces in which you may list HTCJobs, or of those of --namespace (several are separated by commas), as it changes; and it suspends, resumes,
reruns and deletes, with the kubectl command for it.

The address that is printed works once, for the browser in which it is opened first. To see the page on another machine than this one,
give it a port and forward that with ssh, under the same number: ssh -L 8001:127.0.0.1:8001 HOST. It ends with Ctrl-C.

Exit codes: 0 interrupted, 1 the cluster or the port cannot be used, 2 a mistake in the command line.`,
		Args: arguments(0, "no argument"),
	}
	at.flags(c.Flags(), namespaces)
	setting.Text(c.Flags(), &address, "address", "127.0.0.1", loopback, "loopback `address` to listen on")
	setting.Int(c.Flags(), &port, "port", 0, 0, 65535, "its `port`; 0: any that is free")
	setting.Bool(c.Flags(), &all, "all-namespaces,A", false, "all namespaces, or an error if you may not")
	setting.Bool(c.Flags(), &noBrowser, "no-browser", false, "only print the address")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		if all && cmd.Flags().Changed("namespace") {
			return setting.Usage{Err: errors.New("--all-namespaces and --namespace: want one of them")}
		}
		var asked []string
		if cmd.Flags().Changed("namespace") {
			asked = strings.Split(at.namespace, ",")
			at.namespace = asked[0]
		}
		where, err := at.open(cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		klog.SetOutput(io.Discard) // the page itself says what cannot be watched
		klog.LogToStderr(false)
		if asked == nil {
			if asked, err = where.visible(cmd.Context(), all); err != nil {
				return err
			}
		}
		listener, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(port)))
		if err != nil {
			return err
		}
		defer listener.Close()
		return where.page(cmd, listener, asked, !noBrowser)
	}
	return c
}

// page shows the page until the command is interrupted.
func (c *cluster) page(cmd *cobra.Command, listener net.Listener, namespaces []string, browse bool) error {
	server, err := ui.New(ui.Options{
		Server: c.base.Host, Namespaces: namespaces, Client: c.objects, Output: c.askOf,
		Events: func(ctx context.Context, namespace string, o metav1.ListOptions) (*corev1.EventList, error) {
			return c.core.Events(namespace).List(ctx, o)
		},
		Table: c.table,
	}, listener)
	if err != nil {
		return err
	}
	closeBrowser := func() {}
	defer func() { closeBrowser() }()
	return server.Run(cmd.Context(), func() {
		fmt.Fprintf(cmd.OutOrStdout(), "%s\n", server.Address())
		fmt.Fprintln(cmd.ErrOrStderr(), "The address works once. Ctrl-C ends the page.")
		if !browse {
			return
		}
		if closeBrowser, err = openBrowser(server.Address()); err != nil {
			fmt.Fprintln(cmd.ErrOrStderr(), "no browser could be opened:", Plain(err.Error()))
		}
	})
}

// table returns what is in a key of a ConfigMap.
func (c *cluster) table(ctx context.Context, namespace string, of v1alpha1.KeyRef) ([]byte, error) {
	m, err := c.core.ConfigMaps(namespace).Get(ctx, of.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if text, there := m.BinaryData[of.Key]; there {
		return text, nil
	}
	text, there := m.Data[of.Key]
	if !there {
		return nil, fmt.Errorf("the ConfigMap %s has no key %s", of.Name, of.Key)
	}
	return []byte(text), nil
}

// mostNamespaces bounds how many are watched one by one, each by two connections' worth of streams.
const mostNamespaces = 100

// visible returns the namespaces in which the user may list HTCJobs: "" alone for all. Who may not list namespaces sees
// the context's.
func (c *cluster) visible(ctx context.Context, all bool) ([]string, error) {
	one := metav1.ListOptions{Limit: 1}
	_, err := c.objects.HTCJobs("").List(ctx, one)
	if err == nil {
		return []string{""}, nil
	}
	if all || !apierrors.IsForbidden(err) {
		return nil, err
	}
	known, err := c.core.Namespaces().List(ctx, metav1.ListOptions{})
	if apierrors.IsForbidden(err) {
		return []string{c.namespace}, nil
	}
	if err != nil {
		return nil, err
	}
	may := make([]bool, len(known.Items))
	var asking sync.WaitGroup
	places := make(chan struct{}, 10)
	for i, namespace := range known.Items {
		asking.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			_, err := c.objects.HTCJobs(namespace.Name).List(ctx, one)
			may[i] = err == nil
		})
	}
	asking.Wait()
	var found []string
	for i, namespace := range known.Items {
		if may[i] {
			found = append(found, namespace.Name)
		}
	}
	switch {
	case len(found) == 0:
		return []string{c.namespace}, nil
	case len(found) > mostNamespaces:
		return nil, fmt.Errorf(
			"you may list HTCJobs in %d namespaces, and not in all at once: name up to %d of them with --namespace",
			len(found),
			mostNamespaces,
		)
	}
	return found, nil
}

// openBrowser opens the address in the user's browser, if there is a desktop. The address comes to it in a file that
// only the user can read: the arguments of a program can be seen by everybody on the machine.
func openBrowser(address string) (done func(), err error) {
	program := "xdg-open"
	if runtime.GOOS == "darwin" {
		program = "open"
	} else if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return func() {}, nil
	}
	if _, err := exec.LookPath(program); err != nil {
		return func() {}, err
	}
	dir, err := os.MkdirTemp("", "htcd-ui-")
	if err != nil {
		return func() {}, err
	}
	done = func() { _ = os.RemoveAll(dir) }
	file := filepath.Join(dir, "open.html")
	text := `<!doctype html><meta http-equiv="refresh" content="0;url=` + address + `">`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return done, err
	}
	browser := exec.Command(program, file) // #nosec G204 -- one of two names
	if err := browser.Start(); err != nil {
		return done, err
	}
	go func() { _ = browser.Wait() }()
	return done, nil
}
