package command

import (
	"errors"

	"github.com/spf13/cobra"

	"htc.cern.ch/htcd/internal/cli/operator"
	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/daemon"
)

// render shows what htcd would send.
func (s settings) render() *cobra.Command {
	var o daemon.Options
	var r operator.Rendering
	c := &cobra.Command{
		Use:   "render -f FILE",
		Short: "Print what htcd would send for an HTCJob, without sending anything",
		Long: `Print the submit description and the files that go with it, after the defaults and adjustments of the HTCPool. Nothing is
sent, no Secret is read, and the contents of credentials are not shown.

It takes the flags and HTCD_ variables of htcd run, except that --pool names the HTCPool here. In htcd's pod:
kubectl -n htcd exec -i deploy/htcd -- htcd render -f - < job.yaml. With --pool-file no apiserver is needed.`,
		Args: setting.NoArguments,
	}
	setting.Text(c.Flags(), &r.File, "file,f", "", setting.Path, "`file` with the HTCJob; -: standard input (required)")
	setting.Text(c.Flags(), &r.Pool, "pool", "", setting.Object,
		"`name` of the HTCPool; empty: the one that the HTCJob names, or the default one")
	setting.Text(c.Flags(), &r.PoolFile, "pool-file", "", setting.Path,
		"`file` with the HTCPool, which need not exist in the cluster; its namespaceSelector is not looked at")
	setting.Bool(c.Flags(), &r.SubmitOnly, "submit-only", false, "print the submit description alone")
	return s.with(&o, c, nil, func([]string) (err error) {
		if r.File == "" {
			return setting.Usage{Err: errors.New("-f is required: the file with the HTCJob")}
		}
		if err := o.CheckParts(); err != nil {
			return setting.Usage{Err: err}
		}
		if r.Site, err = o.Site(); err != nil {
			return err
		}
		r.Cluster = o.Cluster
		return r.Print(c.Context(), c.InOrStdin(), c.OutOrStdout())
	})
}
