package schedd_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"

	"htc.cern.ch/htcd/api/items"
	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/classad"
	"htc.cern.ch/htcd/internal/convert"
	"htc.cern.ch/htcd/internal/convert/submitfile"
	"htc.cern.ch/htcd/internal/schedd/submit"
)

// What is read of a submit file, and the HTCJob that it becomes, are held against the ads that condor_submit makes.
func TestEveryFileOfTheCorpusBecomesTheJobsThatCondorSubmitMakes(t *testing.T) {
	archives, err := filepath.Glob("../../internal/convert/testdata/corpus/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, archives)
	for _, archive := range archives {
		files := goldens(t, strings.TrimPrefix(archive, "../../internal/"))
		t.Run(filepath.Base(archive), func(t *testing.T) {
			t.Chdir(t.TempDir())
			for _, f := range files {
				require.NoError(t, os.MkdirAll(filepath.Dir(f.Name), 0o755))
				require.NoError(t, os.WriteFile(f.Name, f.Data, 0o644))
			}
			ads, err := dryRun(t.Context(), ".")
			require.NoError(t, err)

			text, err := os.ReadFile("job.sub")
			require.NoError(t, err)
			here := convert.Here(os.Environ(), false)
			parsed, err := submitfile.Parse("job.sub", text)
			require.NoError(t, err)
			queue := parsed.Expand(here.Env).Clusters[0].Queues[0]
			require.Equal(t, len(ads), queue.Len())
			r, err := convert.Submit("job.sub", text, here, convert.Options{Image: "centos"})
			require.NoError(t, err)
			require.Len(t, r.HTCJobs, 1, "%v", r.Lines)
			points, err := items.List(r.HTCJobs[0].Spec.Items, submit.CheckVariable)
			require.NoError(t, err)

			for i, differs := range ads {
				ad := append(slices.Clone(ads[0]), differs...)
				holdsCommands(t, queue.Job(i), ad)
				point := ""
				if len(points) > 0 {
					require.Len(t, points, len(ads))
					point = points[i]
				}
				holdsHTCJob(t, r.HTCJobs[0], i, point, ad)
			}
		})
	}
}

// wordsIn are the words that the program of a job gets.
func wordsIn(t *testing.T, ad classad.Ad) []string {
	t.Helper()
	if old, is := ad.Get("Args").Str(); is {
		return strings.Fields(old)
	}
	now, _ := ad.Get("Arguments").Str()
	words, err := submitfile.Arguments(`"` + strings.ReplaceAll(now, `"`, `""`) + `"`)
	require.NoError(t, err)
	return words
}

// holdsCommands requires that the commands of a job, their macros replaced, are what condor_submit has put into its ad.
func holdsCommands(t *testing.T, job submitfile.Job, ad classad.Ad) {
	t.Helper()
	for attribute, names := range map[string][]string{
		"Out": {"output", "stdout"}, "Err": {"error", "stderr"}, "In": {"input"}, "TransferInput": {"transfer_input_files"},
		"TransferOutput": {"transfer_output_files"}, "TransferOutputRemaps": {"transfer_output_remaps"},
		"JobBatchName": {"batch_name", "JobBatchName"}, "AcctGroup": {"accounting_group"},
	} {
		want, by, err := job.Value(names...)
		require.NoError(t, err)
		if by == nil || want == `""` {
			continue
		}
		got, _ := ad.Get(attribute).Str()
		require.Equal(t, listed(want), listed(got), attribute)
	}
	for name, by := range job.Commands() {
		attribute, of := by.Name, by.Kind == submitfile.Attribute
		if !of {
			attribute, of = expressions[name], expressions[name] != ""
		}
		if !of {
			continue
		}
		text, _, err := job.Value(name)
		require.NoError(t, err)
		want, err := classad.ParseExpr(text)
		require.NoError(t, err)
		got, err := ad.Expr(attribute)
		require.NoError(t, err)
		require.Equal(t, want.String(), got.String(), attribute)
	}
}

// expressions are commands whose values are expressions, and the attributes that they become.
var expressions = map[string]string{
	"on_exit_hold":         "OnExitHold",
	"on_exit_hold_reason":  "OnExitHoldReason",
	"on_exit_hold_subcode": "OnExitHoldSubCode",
	"periodic_hold":        "PeriodicHold",
	"periodic_hold_reason": "PeriodicHoldReason",
	"periodic_release":     "PeriodicRelease",
	"periodic_remove":      "PeriodicRemove",
	"priority":             "JobPrio",
	"prio":                 "JobPrio",
	"max_retries":          "JobMaxRetries",
}

// listed is a list without quotes, and without the blanks beside its commas.
func listed(text string) string {
	parts := strings.Split(strings.Trim(text, `"`), ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return strings.Join(parts, ",")
}

// holdsHTCJob requires that a job of the HTCJob gives its program the words of the ad, and asks for what it asks for.
func holdsHTCJob(t *testing.T, job v1alpha1.HTCJob, proc int, point string, ad classad.Ad) {
	t.Helper()
	words := []string{}
	for _, text := range job.Spec.Script.Args {
		word, err := items.Fill(string(text), proc, point)
		require.NoError(t, err)
		words = append(words, strings.ReplaceAll(word, "{{cluster}}", "1"))
	}
	require.Equal(t, append([]string{}, wordsIn(t, ad)...), words)
	variables, _ := ad.Get("Environment").Str()
	set, err := submitfile.Environment(`"` + strings.ReplaceAll(variables, `"`, `""`) + `"`)
	require.NoError(t, err)
	for _, v := range set {
		if value, is := job.Spec.Environment[v.Name]; is {
			require.Equal(t, v.Value, string(value), v.Name)
		}
	}
	r := job.Spec.Resources
	if r == nil {
		return
	}
	for attribute, asked := range map[string]*resource.Quantity{
		"RequestCpus": r.CPUs, "RequestMemory": r.Memory, "RequestDisk": r.Disk, "RequestGPUs": r.GPUs,
	} {
		if asked != nil {
			got, _ := ad.Get(attribute).Int()
			require.Equal(t, got*max(1, units[attribute]), asked.Value(), attribute)
		}
	}
}

// units are those of attributes, in bytes.
var units = map[string]int64{"RequestMemory": 1 << 20, "RequestDisk": 1 << 10}
