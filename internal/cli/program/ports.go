package program

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/cli/logger"
	"htc.cern.ch/htcd/internal/cli/plugin"
	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/kube/apiserver"
	"htc.cern.ch/htcd/internal/kube/ports"
)

// portsCommand is the program of deploy/components/ports.
func portsCommand() *cobra.Command {
	var at plugin.Connection
	var listen, level, format string
	c := &cobra.Command{
		Use:   "ports",
		Short: "Make the Services of spec.ports in a namespace (run as a Pod there)",
		Long: `Make a Service for each HTCJob and HTCWorkflow of a namespace that has spec.ports, and connect who uses it with the job or node, as htcd
port-forward does, until it has ended. deploy/components/ports runs it in a Pod of that namespace, whose account needs the rights of that
component. Connections that fail are Events of the HTCJob or HTCWorkflow.

Exit codes: 0 it was stopped, 1 it could not begin, 2 a mistake in the command line.`,
		Args: setting.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := logger.New(cmd.ErrOrStderr(), level, format)
			if err != nil {
				return setting.Usage{Err: fmt.Errorf("ports: %w", err)}
			}
			f, err := forwarder(cmd.Context(), &at, log.With().Str("component", "ports").Logger())
			if err != nil {
				return fmt.Errorf("ports: %w", err)
			}
			f.Ready = func() {
				l, err := (&net.ListenConfig{}).Listen(cmd.Context(), "tcp", listen)
				if err != nil {
					f.Log.Error().Err(err).Msg("the readiness probe is not answered")
					return
				}
				go ports.Accept(cmd.Context(), l, func(context.Context, net.Conn) {})
			}
			return f.Run(cmd.Context())
		},
	}
	f := c.Flags()
	at.Flags(f)
	setting.Text(
		f,
		&listen,
		"listen",
		":8080",
		setting.Address,
		"`ADDRESS` that takes connections once all Services are there",
	)
	logger.Flags(f, &level, &format, "json")
	return c
}

// resync is how often everything is looked at again: somebody may have deleted a Service.
const resync = 5 * time.Minute

func forwarder(ctx context.Context, at *plugin.Connection, log zerolog.Logger) (*ports.Forwarder, error) {
	config, namespace, err := at.Config()
	if err != nil {
		return nil, err
	}
	connect, err := at.Ports()
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // the apiserver has limits of its own
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	objects, err := v1alpha1.NewClient(config)
	if err != nil {
		return nil, err
	}
	broadcaster := events.NewBroadcaster(apiserver.NewPacedEvents(&events.EventSinkImpl{Interface: core.EventsV1()}))
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return nil, err
	}
	recorder := broadcaster.NewRecorder(runtime.NewScheme(), ports.Name)
	asked := func(resource string) func(error) {
		return func(err error) {
			if err != nil {
				log.Warn().Err(err).Str("resource", resource).Msg("not listed or watched")
			}
		}
	}
	return &ports.Forwarder{
		Namespace: namespace, Services: core.CoreV1().Services(namespace), Connect: connect,
		HTCJobs: objects.NewInformer(namespace, resync, asked(v1alpha1.Resource), v1alpha1.Ours),
		HTCWorkflows: objects.NewWorkflowInformer(
			namespace, resync, asked(v1alpha1.WorkflowResource), v1alpha1.Ours),
		Warn: apiserver.Events[*corev1.ObjectReference]{Recorder: recorder}.Warning,
		Log:  log,
	}, nil
}
