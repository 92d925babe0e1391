package daemon

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	"golang.org/x/crypto/ssh"
	"k8s.io/apimachinery/pkg/runtime"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/cli/program"
	"htc.cern.ch/htcd/internal/kube/apiserver"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/serve/aggregate"
	"htc.cern.ch/htcd/internal/serve/follow"
)

// shellsAtOnce is how many commands may run in jobs at once: each is a condor_ssh_to_job with a relay.
const shellsAtOnce = 32

// shells lets users run commands in the containers of their jobs.
func (d *daemon) shells(l *loop, book reconciler.Ledger, reader *follow.Reader) *follow.Shells {
	all := d.o.shellDir()
	if err := os.RemoveAll(all); err != nil {
		d.log.Warn().Err(err).Msg("what earlier shells left cannot be removed")
	}
	log := d.log.With().Str("component", "exec").Logger()
	return follow.NewShells(follow.Shells{
		Reader: reader, Places: shellsAtOnce, Review: d.core.AuthorizationV1().SubjectAccessReviews().Create,
		Used: func(object runtime.Object, q aggregate.Query, message string) {
			log.Info().Str("job", q.Namespace+"/"+q.Name).Msg(message)
			apiserver.Events[runtime.Object]{Recorder: l.recorder}.Use(object, q.User, "Exec", message)
		},
		Connect: func(ctx context.Context, id schedd.Identity, cluster, proc int, fn func(*ssh.Client) error) error {
			self, err := os.Executable()
			if err != nil {
				return err
			}
			if err := os.MkdirAll(all, 0o700); err != nil {
				return err
			}
			dir, err := os.MkdirTemp(all, "") // a tool that is killed leaves the key of its connection
			if err != nil {
				return err
			}
			defer os.RemoveAll(dir)
			return l.condor.Connect(ctx, id, cluster, proc, []string{self, program.RelayWord}, dir, fn)
		},
		Closed: func(ctx context.Context, run ledger.Run) (string, error) { return d.closed(ctx, book, run) },
	})
}

func (o *Options) shellDir() string { return filepath.Join(o.Data, "ssh") }

// closed says why nobody may run anything in the jobs of a run. HTCondor's sshd keeps its files where the script may
// write. A script that replaces them at the right moment runs outside of its container, and so with whatever image it
// likes.
func (d *daemon) closed(ctx context.Context, book reconciler.Ledger, run ledger.Run) (string, error) {
	const why = ", so htcd exec is refused: HTCondor's sshd starts from files in the job's directory, by which a script could leave its container, and so its image. " +
		"There are htcd logs and htcd get-output"
	if len(d.o.AllowImages) > 0 {
		return "htcd's administrator allows certain images alone (--allow-images)" + why, nil
	}
	if run.PoolSpec == "" {
		return "", nil
	}
	var spec v1alpha1.HTCPoolSpec
	err := book.Read(ctx, func(tx *ledger.Tx) error {
		text, err := tx.PoolSpec(run.PoolSpec)
		if err != nil {
			return err
		}
		return json.Unmarshal([]byte(text), &spec)
	})
	if err == nil && len(spec.Images) > 0 {
		return "HTCPool " + run.Pool + " allows certain images alone" + why, nil
	}
	return "", err
}
