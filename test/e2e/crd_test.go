package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// A change is what a case does to an accepted manifest.
type change func(t *testing.T, spec map[string]any)

func set(path string, value any) change {
	return func(t *testing.T, spec map[string]any) {
		require.NoError(t, unstructured.SetNestedField(spec, value, strings.Split(path, ".")...))
	}
}

func setInputURL(url string) change {
	return set("inputs", []any{map[string]any{"name": "calib.root", "url": url}})
}

func setOutputURL(path, url string) change {
	return set("outputs", []any{map[string]any{"path": path, "url": url}})
}

func setOutputs(paths ...string) change {
	var all []any
	for _, path := range paths {
		all = append(all, map[string]any{"path": path})
	}
	return set("outputs", all)
}

func setPart(name string, part map[string]any) change { return set("script."+name, part) }

// executable has the job run a program of its own, beside an input of this name.
func executable(name, input string) change {
	return func(t *testing.T, spec map[string]any) {
		drop("script.command")(t, spec)
		drop("script.source")(t, spec)
		set("script.executable", name)(t, spec)
		if input != "" {
			ref := map[string]any{"name": "programs", "key": "program"}
			set("inputs", []any{map[string]any{"name": input, "configMapKeyRef": ref}})(t, spec)
		}
	}
}

func drop(path string) change {
	return func(_ *testing.T, spec map[string]any) {
		unstructured.RemoveNestedField(spec, strings.Split(path, ".")...)
	}
}

func both(a, b change) change {
	return func(t *testing.T, spec map[string]any) { a(t, spec); b(t, spec) }
}

// The apiserver's answer to kubectl apply: "" if accepted, otherwise words that its refusal must contain.
var applied = map[string]answer{
	"one job needs no number": {drop("queue"), ""},
	"the largest queue":       {set("script.queue", int64(1_000_000)), ""},
	"more than the largest queue": {
		set("script.queue", int64(1_000_001)),
		"spec.script.queue: Invalid value: 1000001: spec.script.queue in body should be less than or equal to 1000000",
	},
	"a queue of none":            {set("script.queue", int64(0)), "should be greater than or equal to 1"},
	"a queue in its older place": {set("queue", int64(3)), ""},
	"a queue of none in its older place": {
		set("queue", int64(0)),
		"spec.queue in body should be greater than or equal to 1",
	},
	"the same queue in both places": {both(set("queue", int64(3)), set("script.queue", int64(3))), ""},
	"different queues in both places": {
		both(set("queue", int64(3)), set("script.queue", int64(4))),
		"spec.queue and spec.script.queue differ: write the number once, in spec.script.queue",
	},
	"a queue that is a word":   {set("script.queue", "three"), "must be of type integer"},
	"no spec.name":             {drop("name"), ""},
	"an empty spec.name":       {set("name", ""), "spec.name"},
	"a spec.name of two lines": {set("name", "a\nqueue 100"), "the batch name must be one line"},
	"a spec.name with a tab":   {set("name", "a\tb"), "the batch name must be one line"},
	"a spec.name with a macro": {
		set("name", "$(ClusterId)"),
		"the batch name must not hold a double quote, a dollar sign or a backslash",
	},
	"a spec.name with a quote":                {set("name", `a"b`), "the batch name must not hold a double quote"},
	"a spec.name with a backslash at its end": {set("name", `a\`), "the batch name must not hold a double quote"},
	"a spec.name with a space at its end":     {set("name", "a "), "leave spec.name out to use metadata.name"},
	"a spec.name of 253 characters":           {set("name", strings.Repeat("n", 253)), ""},
	"a spec.name of 254 characters":           {set("name", strings.Repeat("n", 254)), "spec.name: Too long"},
	"an input by https": {
		setInputURL("https://user@store.example.org:8443/a/calib%20v1.root?x=y&z=1"),
		"",
	},
	"an input by root":             {setInputURL("root://eos.example.org//calib.root"), ""},
	"an input from a file: URL":    {setInputURL("file:///etc/passwd"), "the url must not be a file"},
	"an input URL with a password": {setInputURL("https://user:secret@example.org/a"), "without a password"},
	"an input URL with a comma": {
		setInputURL("https://example.org/a,https://example.org/b"),
		"the url must be scheme://host/path",
	},
	"an input URL with a newline": {
		setInputURL("https://example.org/a\nqueue 5"),
		"the url must be scheme://host/path",
	},
	"an input URL with a macro": {
		setInputURL("https://example.org/$(Process)"),
		"the url must be scheme://host/path",
	},
	"an input URL with a quote": {
		setInputURL(`https://example.org/"`),
		"the url must be scheme://host/path",
	},
	"an input without a scheme": {setInputURL("/etc/passwd"), "the url must be scheme://host/path"},
	"an input URL of 1,025 characters": {
		setInputURL("https://example.org/" + strings.Repeat("a", 1005)),
		"Too long: may not be more than 1024",
	},
	"an input of two sources": {
		set(
			"inputs",
			[]any{
				map[string]any{
					"name":            "a",
					"url":             "https://e/a",
					"configMapKeyRef": map[string]any{"name": "a", "key": "b"},
				},
			},
		),
		"exactly one source: configMapKeyRef, secretKeyRef, jobRef, artifact, url or upload",
	},
	"an optional input URL": {
		set("inputs", []any{map[string]any{"name": "a", "url": "https://e/a", "optional": true}}),
		"an input from a url cannot be optional",
	},
	"outputs": {
		setOutputs("result/*.root", "plots", "big[0-9]?.dat", "x-1+2=3@4%5~6:7"),
		"",
	},
	"too many outputs": {
		setOutputs(strings.Fields(strings.Repeat("a ", 21))...),
		"spec.outputs: Too many: 21: must have at most 20 items",
	},
	"an output twice":          {setOutputs("a", "a"), "Duplicate value"},
	"an output without a path": {setOutputs(""), "spec.outputs[0].path"},
	"an output of 201 characters": {
		setOutputs(strings.Repeat("a", 201)),
		"Too long: may not be more than 200",
	},
	"an absolute output": {
		setOutputs("/etc/passwd"),
		"an output's path must be relative to the script's directory",
	},
	"an output above": {
		setOutputs("../a"),
		"an output's path must be relative to the script's directory",
	},
	"an output with .. inside": {
		setOutputs("a/../b"),
		"an output's path must be relative to the script's directory",
	},
	"an output that ends in a slash": {setOutputs("a/"), "it must not end in /"},
	"a hidden output":                {setOutputs("a/.b"), "no part of it may begin with a dot"},
	"an output with a comma": {
		setOutputs("a,b"),
		"an output's path must be relative to the script's directory",
	},
	"an output with a newline": {
		setOutputs("a\nb"),
		"an output's path must be relative to the script's directory",
	},
	"an output with a space": {
		setOutputs("a b"),
		"an output's path must be relative to the script's directory",
	},
	"an output with a backslash": {
		setOutputs(`a\*`),
		"an output's path must be relative to the script's directory",
	},
	"an output with a macro": {
		setOutputs("$(Process)"),
		"an output's path must be relative to the script's directory",
	},
	"an output with htcd's name":        {setOutputs("job.sh"), "htcd and HTCondor use these names"},
	"an output in HTCondor's directory": {setOutputs("tmp/a"), "htcd and HTCondor use these names"},
	"standard output as an output": {
		setOutputs("_condor_stdout"),
		"standard output and error are always brought back",
	},
	"an input of each kind": {inputList(
		file(
			"a",
			"configMapKeyRef",
			"name",
			"fit",
			"key",
			"a.yaml",
		),
		file("b", "secretKeyRef", "name", "db", "key", "pass"),
		file("c", "jobRef", "name", "prep", "path", "out/a b,c", "proc", "Same"),
	), ""},
	"an input of a numbered job": {
		inputList(file("a", "jobRef", "name", "prep", "path", "x", "proc", int64(99_999))),
		"",
	},
	"two inputs of one name": {
		inputList(
			file("a", "configMapKeyRef", "name", "x", "key", "x"),
			file("a", "secretKeyRef", "name", "x", "key", "x"),
		),
		"spec.inputs[1]: Duplicate value",
	},
	"an input without a source": {
		inputList(map[string]any{"name": "a"}),
		"an input needs exactly one source",
	},
	"an input with two sources": {
		inputList(
			united(
				file("a", "configMapKeyRef", "name", "x", "key", "x"),
				file("a", "secretKeyRef", "name", "x", "key", "x"),
			),
		),
		"an input needs exactly one source",
	},
	"an input's name with a slash": {
		inputList(file("a/b", "configMapKeyRef", "name", "x", "key", "x")),
		"an input's name must be letters, digits and _ . + -",
	},
	"an input's name with a comma": {
		inputList(file("a,b", "configMapKeyRef", "name", "x", "key", "x")),
		"an input's name must be",
	},
	"an input's name with a macro": {
		inputList(file("$(X)", "configMapKeyRef", "name", "x", "key", "x")),
		"an input's name must be",
	},
	"an input's name with a line end": {
		inputList(file("a\n", "configMapKeyRef", "name", "x", "key", "x")),
		"an input's name must be",
	},
	"a hidden input": {
		inputList(file(".a", "configMapKeyRef", "name", "x", "key", "x")),
		"an input's name must be",
	},
	"an input called like the script": {
		inputList(file("script", "configMapKeyRef", "name", "x", "key", "x")),
		"an input must not be called script",
	},
	"an input called like HTCondor's": {
		inputList(file("_condor_stdout", "configMapKeyRef", "name", "x", "key", "x")),
		"nor begin with _condor",
	},
	"a long name of an input": {
		inputList(file(strings.Repeat("a", 129), "configMapKeyRef", "name", "x", "key", "x")),
		"Too long",
	},
	"a jobRef with an absolute path": {
		inputList(file("a", "jobRef", "name", "x", "path", "/etc/passwd")),
		"the path must be relative",
	},
	"a jobRef that leads out": {
		inputList(file("a", "jobRef", "name", "x", "path", "a/../../b")),
		"the path must be relative",
	},
	"a jobRef with control characters": {
		inputList(file("a", "jobRef", "name", "x", "path", "a\nb")),
		"the path must be one line",
	},
	"a jobRef of another namespace": {
		inputList(file("a", "jobRef", "name", "other/x", "path", "a")),
		"the name must be a Kubernetes name",
	},
	"a jobRef of a negative job": {
		inputList(file("a", "jobRef", "name", "x", "path", "a", "proc", int64(-1))),
		"proc must be Same, All, or the number of a job",
	},
	"a jobRef of a job beyond the limits": {
		inputList(file("a", "jobRef", "name", "x", "path", "a", "proc", int64(1)<<40)),
		"proc must be Same, All, or the number of a job",
	},
	"a jobRef of some jobs": {
		inputList(file("a", "jobRef", "name", "x", "path", "a", "proc", "Some")),
		"spec.inputs[0].jobRef.proc",
	},
	"a hundred inputs":         {inputList(files(100)...), ""},
	"a hundred and one inputs": {inputList(files(101)...), "must have at most 100 items"},
	"an output by https": {
		setOutputURL("big.root", "https://store.example.org:8443/{namespace}/{name}/{attempt}/{proc}/big.root"),
		"",
	},
	"an output by root": {
		setOutputURL("big.root", "root://eos.example.org//out/{name}.root"),
		"",
	},
	"an output to a file: URL": {
		setOutputURL("big.root", "file:///tmp/a"),
		"the url must not be a file",
	},
	"an output URL with a query": {
		setOutputURL("big.root", "https://example.org/a?b=c"),
		"without a password or a query",
	},
	"an output URL with another remap": {
		setOutputURL("big.root", "https://example.org/a;b=/etc/c"),
		"without a password or a query",
	},
	"an output URL with an unknown place": {
		setOutputURL("big.root", "https://example.org/{uid}"),
		"without a password or a query",
	},
	"an output URL for a pattern": {
		setOutputURL("*.root", "https://example.org/a"),
		"the path must be that of one file",
	},
	"no script":      {drop("script"), "spec.script: Required value"},
	"no image":       {drop("script.image"), "spec.script.image: Required value"},
	"an empty image": {set("script.image", ""), "spec.script.image"},
	"an image with registry, port and digest": {
		set("script.image", "registry.example.org:5000/a/b-c_d:v1@sha256:0123456789abcdef"),
		"",
	},
	"an image with docker://":  {set("script.image", "docker://centos:7"), ""},
	"an image with oras://":    {set("script.image", "oras://registry.example.org/a/b:v1"), ""},
	"an image with library://": {set("script.image", "library://sylabs/examples/lolcow"), ""},
	"an image in CVMFS": {
		set("script.image", "/cvmfs/unpacked.cern.ch/registry.hub.docker.com/library/centos:7"),
		"",
	},
	"a .sif file": {set("script.image", "/eos/user/s/someone/image.sif"), ""},
	"an image with another scheme": {
		set("script.image", "http://example.org/a.sif"),
		"the image's scheme must be docker://, oras:// or library://",
	},
	"an image with a scheme and no name": {set("script.image", "docker://"), "with a name after it"},
	"an image with a relative path": {
		set("script.image", "../../etc"),
		"the image must be a docker reference such as centos",
	},
	"an image that looks like an option": {
		set("script.image", "--writable"),
		"the image must be a docker reference such as centos",
	},
	"an image with a space": {
		set("script.image", "centos bash"),
		"spaces, quotes and control characters have no place in it",
	},
	"an image with a newline": {
		set("script.image", "centos\n"),
		"spaces, quotes and control characters have no place in it",
	},
	"an image with a command in it": {
		set("script.image", "centos;id"),
		"the image must be a docker reference",
	},
	"an image with a macro": {set("script.image", "$(HOME)"), "the image must be a docker reference"},
	"an image of more than 1,024 characters": {
		set("script.image", strings.Repeat("i", 1025)),
		"spec.script.image: Too long",
	},
	"no command":       {drop("script.command"), "spec.script.command: Required value"},
	"an empty command": {set("script.command", ""), "spec.script.command"},
	"a blank command": {
		set("script.command", "  "),
		"the command must not be blank: write what runs the script",
	},
	"a command with an argument": {set("script.command", "python3 -u"), ""},
	"a command of two lines": {
		set("script.command", "bash\nid"),
		"the command must be one line without control characters: put more lines into script.source",
	},
	"a command with quotes": {
		set("script.command", "bash -c 'echo hi'"),
		"the command must not hold quotes: it is split into words at white space",
	},
	"a command with double quotes": {
		set("script.command", `bash -c "id"`),
		"write what needs quotes into script.source",
	},
	"a command as a list":       {set("script.command", []any{"bash"}), "must be of type string"},
	"an executable":             {executable("/usr/bin/env", ""), ""},
	"an executable of an input": {executable("simulate", "simulate"), ""},
	"an executable beside a source": {
		set("script.executable", "/usr/bin/env"),
		"script.executable replaces script.command and script.source",
	},
	"an executable that the job has not": {
		executable("simulate", "other"),
		"the job has no such file: add it to spec.inputs",
	},
	"an executable with arguments": {executable("/usr/bin/env -i", ""), "arguments belong into script.args"},
	"no source":                    {drop("script.source"), "spec.script.source: Required value"},
	"an empty source":              {set("script.source", ""), "spec.script.source"},
	"a blank source":               {set("script.source", " \r\n\t\n"), "the script must not be blank"},
	"a source with a NUL": {
		set("script.source", "echo \x00"),
		"the script must not hold NUL characters",
	},
	"a source of 256 KiB": {set("script.source", strings.Repeat("x", 256<<10)), ""},
	"a source of one byte more": {
		set("script.source", strings.Repeat("x", 256<<10+1)),
		"spec.script.source: Too long",
	},
	"a source of one byte more in UTF-8": {
		set("script.source", strings.Repeat("ü", 128<<10)+"x"),
		"the script must be at most 256 KiB of UTF-8",
	},
	"an argument with a NUL": {
		set("script.args", []any{"a\nb", "a\x00b"}),
		`spec.script.args[1] in body should match '^[^\x00]*$'`,
	},
	"something before and after": {
		both(
			setPart(
				"before",
				map[string]any{"command": "", "source": strings.Repeat("x", 64<<10), "args": []any{"", "a\nb"}},
			),
			setPart("after", map[string]any{"command": "python3 -u", "source": "pass"}),
		),
		"",
	},
	"nothing before": {
		setPart("before", map[string]any{"source": " \n"}),
		"source must not be blank: write at least one command",
	},
	"a NUL after": {setPart("after", map[string]any{"source": "a\x00"}), "source must not hold NUL characters"},
	"an argument after with a NUL": {
		setPart("after", map[string]any{"source": "true", "args": []any{"\x00"}}),
		"spec.script.after.args[0] in body should match",
	},
	"a blank command before": {
		setPart("before", map[string]any{"source": "true", "command": "  "}),
		"the command must not be blank: leave it out",
	},
	"a command of two lines before": {
		setPart("before", map[string]any{"source": "true", "command": "sh\nid"}),
		"put more lines into source",
	},
	"a command with quotes after": {
		setPart("after", map[string]any{"source": "true", "command": "sh -c 'id'"}),
		"write what needs quotes into source",
	},
	"no htcopts":        {drop("htcopts"), ""},
	"empty htcopts":     {set("htcopts", ""), ""},
	"htcopts of 64 KiB": {set("htcopts", strings.Repeat("#", 64<<10)), ""},
	"htcopts of one byte more": {
		set("htcopts", strings.Repeat("#", 64<<10+1)),
		"spec.htcopts: Too long",
	},
	"htcopts of one byte more in UTF-8": {
		set("htcopts", "#"+strings.Repeat("ü", 32<<10)),
		"htcopts must be at most 64 KiB of UTF-8",
	},
	"htcopts with carriage returns": {
		set("htcopts", "request_cpus = 2\r\n"),
		"save it with plain (Unix) line ends",
	},
	"htcopts with a queue statement": {
		set("htcopts", "request_cpus = 2\nqueue 100\n"),
		"write how many jobs you want in spec.script.queue",
	},
	"htcopts with a bare queue statement": {
		set("htcopts", "  Queue"),
		"write how many jobs you want in spec.script.queue",
	},
	"htcopts that queue over a list": {
		set("htcopts", "queue f matching /etc/*"),
		"write how many jobs you want in spec.script.queue",
	},
	"htcopts with a word that begins with queue": {set("htcopts", "+QueueName = \"x\"\nqueue_name = 1\n"), ""},
	"htcopts as a list":                          {set("htcopts", []any{"request_cpus = 2"}), "must be of type string"},
	"a field that does not exist":                {set("scirpt", "x"), `unknown field "spec.scirpt"`},
}

func TestApplyAnswers(t *testing.T) {
	t.Parallel()
	requireAnswers(t, v1alpha1.Resource, v1alpha1.Kind, applied, func() map[string]any {
		return map[string]any{
			"name":    "a",
			"script":  map[string]any{"image": "centos", "command": "bash", "source": "exit 0\n"},
			"htcopts": "+JobFlavour = \"espresso\"\n",
		}
	})
}

func TestShippedAndOlderManifestsAreAccepted(t *testing.T) {
	t.Parallel()
	jobs, workflows := dynamicJobs(t), dynamicObjects(t, v1alpha1.WorkflowResource)
	var files []string
	for _, pattern := range []string{"../../examples/*.yaml", "../../examples/*/*.yaml", "testdata/crd/*.yaml"} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		files = append(files, found...)
	}
	var accepted int
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		job := &unstructured.Unstructured{}
		require.NoError(t, yaml.UnmarshalStrict(text, &job.Object), file)
		all := []*unstructured.Unstructured{job}
		if job.GetKind() == "Workflow" {
			all = argoJobs(t, job)
		}
		for _, object := range all {
			switch object.GetKind() {
			case v1alpha1.Kind:
				require.NoError(t, dryRun(t, jobs, object), file)
			case v1alpha1.WorkflowKind:
				require.NoError(t, dryRun(t, workflows, object), file)
			default:
				continue
			}
			accepted++
		}
	}
	require.GreaterOrEqual(t, accepted, 8)
}

func dynamicJobs(t *testing.T) dynamic.ResourceInterface { return dynamicObjects(t, v1alpha1.Resource) }

func dynamicObjects(t *testing.T, resource string) dynamic.ResourceInterface {
	namespace := trial.Namespace(t)
	client, err := dynamic.NewForConfig(trial.Config(t))
	require.NoError(t, err)
	return client.Resource(v1alpha1.GroupVersion.WithResource(resource)).Namespace(namespace)
}

// answer is what a change of an accepted spec is refused with; empty: it is not.
type answer struct {
	change  change
	refusal string
}

// requireAnswers applies each change to a spec, without storing it.
func requireAnswers(t *testing.T, resource, kind string, all map[string]answer, accepted func() map[string]any) {
	t.Helper()
	objects := dynamicObjects(t, resource)
	for name, tc := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := accepted()
			tc.change(t, spec)
			err := dryRun(t, objects, &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": v1alpha1.GroupVersion.String(), "kind": kind,
				"metadata": map[string]any{"generateName": "answer-"}, "spec": spec,
			}})
			if tc.refusal == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.refusal)
		})
	}
}

// dryRun requests everything that an apply does, except storing.
func dryRun(t *testing.T, jobs dynamic.ResourceInterface, job *unstructured.Unstructured) error {
	t.Helper()
	var created *unstructured.Unstructured
	var err error
	for range 3 { // the apiserver of a busy machine gives up after 34 s
		created, err = jobs.Create(t.Context(), job, metav1.CreateOptions{
			DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict,
		})
		if !apierrors.IsTimeout(err) {
			break
		}
	}
	if err == nil && created.GetUID() == "" {
		return fmt.Errorf("%s was answered without a UID", job.GetName())
	}
	return err
}
