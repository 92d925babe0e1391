package plugin

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/convert"
)

func convertCommand() *cobra.Command {
	var options conversion
	var dir string
	var explain bool
	c := &cobra.Command{
		Use:   "convert FILE [NAME=VALUE...]",
		Short: "Make HTCJobs of a submit description file of HTCondor, or an HTCWorkflow of a DAG file",
		Long: `Make HTCJobs of a submit description file, as condor_submit reads it in this directory: macros, conditionals,
included files, and tables after queue. The manifest has the HTCJobs and, in ConfigMaps, the files that the jobs need;
comments say which line each field comes from. Files that all jobs have and that no ConfigMap has room for are named as
uploads: htcd submit uploads them, and htcd upload does so for who applies the manifest.

Standard error says of each line that is lost why, and what to write instead; with --explain, what has become of every
line. Jobs whose requests or other commands differ become several HTCJobs. Of a DAG file, which ends in .dag or begins with
a command of DAGMan, an HTCWorkflow is made, as condor_submit_dag reads it in this directory, with what its nodes' submit
files say. Programs that the file names (queue from PROGRAM |, include : PROGRAM |) are run only with --run.

As for condor_submit, NAME=VALUE counts as if it stood at the beginning of the submit file, and what --append says as if
it stood before the first queue statement.

Exit codes:

  0  everything is in the manifest
  1  something is lost, and the manifest has the rest; or there can be no manifest
  2  a mistake in the command line`,
		Example: `  htcd convert analysis.sub --image centos --explain
  htcd convert analysis.sub --image centos -o manifests && kubectl apply -f manifests/analysis.yaml
  htcd convert flow.dag --image centos -o manifests && kubectl apply -f manifests/flow.yaml`,
		Args: func(cmd *cobra.Command, args []string) error {
			files, _ := definitions(args)
			return arguments(1, "a submit description file, or a DAG file")(cmd, files)
		},
	}
	options.flags(c.Flags())
	setting.Text(c.Flags(), &dir, "output,o", "", setting.Path,
		"write the manifest into this `directory`, as NAME.yaml, instead of to the standard output")
	setting.Bool(c.Flags(), &explain, "explain", false, "say what has become of every line")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		files, before := definitions(args)
		options.before = before
		text, err := readFile(files[0], maxManifests)
		if err != nil {
			return err
		}
		result, err := options.convert(files[0], text, explain, cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		text, err = result.YAML()
		if err != nil {
			return err
		}
		if dir == "" {
			_, err = cmd.OutOrStdout().Write(text)
		} else {
			err = writeManifest(dir, result.Name+".yaml", text)
		}
		if err == nil && convert.Lost(result.Lines) {
			return Exit{1}
		}
		return err
	}
	return c
}

// definitions are the arguments with =, as condor_submit takes them; the others are files.
func definitions(args []string) (files, before []string) {
	for _, arg := range args {
		if strings.Contains(arg, "=") {
			before = append(before, arg)
		} else {
			files = append(files, arg)
		}
	}
	return files, before
}

func writeManifest(dir, name string, text []byte) error {
	err := os.MkdirAll(dir, 0o755) // #nosec G301 -- manifests are no secrets
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name), text, 0o644) // #nosec G306 -- manifests
}

// conversion is what a submit file does not say.
type conversion struct {
	options convert.Options
	run     bool
	before  []string            // statements at the beginning of the submit file
	after   []string            // and before its first queue statement
	uploads map[string]toUpload // what the manifests name, by its path
}

// upload names a file that ConfigMaps have no room for.
func (o *conversion) upload(path string) (string, error) {
	f, known := o.uploads[path]
	if !known {
		var err error
		if f, err = fileToUpload(path); err != nil {
			return "", err
		}
		o.uploads[path] = f
	}
	return f.upload, nil
}

func (o *conversion) flags(f *pflag.FlagSet) {
	setting.Text(f, &o.options.Image, "image", "", setting.Word,
		"the `image` of the jobs, if the submit file names none, or instead of it")
	setting.Text(f, &o.options.Name, "name", "", setting.Object,
		"the `name` of the HTCJob, or HTCWorkflow; that of the file when absent")
	setting.Text(f, &o.options.Proxy, "proxy", "", secretKey,
		"the `Secret` with the X.509 proxy, or SECRET/KEY, for use_x509userproxy")
	setting.Text(f, &o.options.Token, "token", "", secretKey,
		"the `Secret` with the token, or SECRET/KEY, for use_oauth_services and use_scitokens")
	setting.Bool(f, &o.options.ScriptsInJobs, "scripts-in-jobs", false,
		"run the PRE and POST scripts of a DAG file in its nodes' jobs, where they find the files of the job alone")
	setting.Repeated(f, &o.after, "append,a", setting.Word,
		"a `statement` before the first queue statement of the submit file, as \"request_cpus = 2\"; can be repeated")
	setting.Bool(f, &o.run, "run", false, "run the programs whose output the submit file takes")
}

// uploadsOf are those that a manifest names.
func (o *conversion) uploadsOf(m manifest) (all []toUpload) {
	for _, path := range slices.Sorted(maps.Keys(o.uploads)) {
		if f := o.uploads[path]; bytes.Contains(m.text, []byte(f.upload)) {
			all = append(all, f)
		}
	}
	return all
}

// secretKey names a Secret and perhaps one of its keys.
var secretKey = setting.Is("a Secret's name, or NAME/KEY", func(text string) bool {
	name, key, both := strings.Cut(text, "/")
	return len(validation.IsDNS1123Subdomain(name)) == 0 && (!both || len(validation.IsConfigMapKey(key)) == 0)
})

// manifests converts the text of a submit file to what is applied: HTCJobs, and the ConfigMaps of each. Something that
// is lost is an error.
func (o *conversion) manifests(
	file string, text []byte, told io.Writer,
) ([]manifest, [][]corev1.ConfigMap, error) {
	result, err := o.convert(file, text, false, told)
	if err != nil {
		return nil, nil, err
	}
	if convert.Lost(result.Lines) {
		return nil, nil, fmt.Errorf(
			"%s: something would be lost: mend it, or apply the manifest that htcd convert makes of the rest",
			file,
		)
	}
	jobs, err := result.Jobs()
	if err != nil {
		return nil, nil, err
	}
	all, err := split(jobs)
	return all, result.ConfigMaps, err
}

// convert makes a manifest of the text of a submit file, and says what becomes of its lines. It fails if there can be
// none.
func (o *conversion) convert(
	file string, text []byte, explain bool, told io.Writer,
) (result convert.Result, err error) {
	here := convert.Here(os.Environ(), o.run)
	o.uploads = map[string]toUpload{}
	here.Upload = o.upload
	here.Before, here.After = o.before, o.after
	isDAG := kindOfFile(file, text) == aDAGFile
	switch {
	case isDAG && len(o.before)+len(o.after) > 0:
		err = setting.Usage{Err: fmt.Errorf("%s is a DAG file: VARS ALL_NODES NAME=\"VALUE\" in it gives its nodes a value", file)}
	case isDAG:
		result, err = convert.DAG(file, here, o.options)
	default:
		result, err = convert.Submit(file, text, here, o.options)
	}
	if err != nil {
		return result, err
	}
	var table strings.Builder
	convert.WriteTable(&table, result.Lines, explain)
	if _, err := io.WriteString(told, Plain(table.String())); err != nil {
		return result, err
	}
	if len(result.HTCJobs) == 0 && result.Workflow == nil {
		kind := v1alpha1.Kind
		if isDAG {
			kind = v1alpha1.WorkflowKind
		}
		return result, fmt.Errorf("%s: no %s is made of it, for the reasons above", file, kind)
	}
	return result, nil
}
