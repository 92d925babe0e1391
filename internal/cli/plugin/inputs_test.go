package plugin

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/cli/setting"
)

func TestInputFilesAreReadUnderTheirNames(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	looped := filepath.Join(dir, "looped")
	require.NoError(t, os.Mkdir(looped, 0o700))
	require.NoError(t, os.Symlink(dir, filepath.Join(looped, "link")))
	fit, odd, large := write("fit.yaml", "a"), write("my file", ""), write("large", strings.Repeat("x", maxInputs))
	got, uploaded, err := readInputs([]string{fit, "other=" + odd, "a=" + write("b=c", "d")})
	require.NoError(t, err)
	require.Empty(t, uploaded)
	require.Equal(t, []input{{"fit.yaml", []byte("a")}, {"other", []byte{}}, {"a", []byte("d")}}, got)
	got, uploaded, err = readInputs([]string{large})
	require.NoError(t, err)
	require.Len(t, got, 1, "exactly 1 MiB")
	require.Empty(t, uploaded)
	huge, err := fileToUpload(write("huge", strings.Repeat("y", maxInputs+1)))
	require.NoError(t, err)
	for _, arguments := range [][]string{{fit, large, huge.path}, {huge.path, fit, large}} {
		got, uploaded, err = readInputs(arguments)
		require.NoError(t, err)
		require.Equal(t, []input{{"fit.yaml", []byte("a")}}, got)
		require.Equal(t, largeInput{name: "huge", toUpload: huge}, uploaded[0])
		require.Equal(t, "large", uploaded[1].name, "the largest, as many as there is no room for")
	}

	for name, c := range map[string]struct {
		arguments []string
		usage     bool
		words     string
	}{
		"a name that a ConfigMap cannot have": {[]string{odd}, true, `"my file" cannot be the name of an input: want at most 128 letters, digits and _ . -, the first a letter, a digit or _; write NAME=FILE`},
		"a hidden file":                       {[]string{dir + "/.rc"}, true, "write NAME=FILE"},
		"a plus":                              {[]string{"a+b=" + fit}, true, "cannot be the name"},
		"a path as a name":                    {[]string{"a/b=" + fit}, true, "cannot be the name"},
		"a long name":                         {[]string{strings.Repeat("a", 129) + "=" + fit}, true, "cannot be the name"},
		"nothing":                             {[]string{""}, true, "want FILE, or NAME=FILE"},
		"no file":                             {[]string{"a="}, true, "want FILE, or NAME=FILE"},
		"one name twice":                      {[]string{fit, "fit.yaml=" + odd}, true, "would both be called fit.yaml: write NAME=FILE"},
		"a directory with a link to one":      {[]string{"d=" + looped}, false, "is a link to a directory"},
		"a file that is not there":            {[]string{dir + "/none"}, false, "no such file"},
		"a device without an end":             {[]string{"/dev/zero"}, false, "more than 1 MiB, which is what a ConfigMap can hold, and is no regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := readInputs(c.arguments)
			require.ErrorContains(t, err, c.words)
			require.Equal(t, c.usage, errors.As(err, &setting.Usage{}))
		})
	}
}

func manifestOf(t *testing.T, text string) manifest {
	t.Helper()
	all, err := split([]byte(text))
	require.NoError(t, err)
	require.Len(t, all, 1)
	return all[0]
}

const fitManifest = "apiVersion: htc.cern.ch/v1alpha1\nkind: HTCJob\nmetadata: {name: fit}\nspec:\n  activeDeadlineSeconds: 9007199254740993\n"

func TestAPipeIsNotUploaded(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	_, err := fileToUpload(pipe)
	require.ErrorContains(t, err, "is no regular file")
}

func TestFilesAreBundledAsInputs(t *testing.T) {
	files := []input{{"fit.yaml", []byte("a: <b>\n")}, {"table", []byte{0xff, 0}}}
	bundled, m, err := bundle(manifestOf(t, fitManifest+"  inputs:\n  - {name: calib, url: 'https://x/y'}\n"), files)
	require.NoError(t, err)
	require.Regexp(t, `^fit-inputs-[0-9a-f]{10}$`, bundled.Name)
	require.True(t, *bundled.Immutable)
	require.Equal(t, map[string]string{"fit.yaml": "a: <b>\n"}, bundled.Data)
	require.Equal(t, map[string][]byte{"table": {0xff, 0}}, bundled.BinaryData)
	require.Contains(t, string(m.text), "9007199254740993", "nothing else has changed")
	var job v1alpha1.HTCJob
	require.NoError(t, yaml.UnmarshalStrict(m.text, &job))
	require.Equal(t, []v1alpha1.Input{
		{Name: "calib", URL: "https://x/y"},
		{Name: "fit.yaml", ConfigMapKeyRef: &v1alpha1.KeyRef{Name: bundled.Name, Key: "fit.yaml"}},
		{Name: "table", ConfigMapKeyRef: &v1alpha1.KeyRef{Name: bundled.Name, Key: "table"}},
	}, job.Spec.Inputs)

	again, repeated, err := bundle(
		manifestOf(t, fitManifest+"  inputs:\n  - {name: calib, url: 'https://x/y'}\n"),
		files,
	)
	require.NoError(t, err)
	require.Equal(t, bundled, again)
	require.Equal(t, m.text, repeated.text)
	for what, other := range map[string][]input{
		"content": {{"fit.yaml", []byte("b")}, files[1]}, "name": {{"fit", files[0].content}, files[1]}, "fewer": files[:1],
	} {
		differs, _, err := bundle(manifestOf(t, fitManifest), other)
		require.NoError(t, err)
		require.NotEqual(t, bundled.Name, differs.Name, what)
	}
	other, _, err := bundle(manifestOf(t, strings.Replace(fitManifest, "name: fit", "name: fitter", 1)), files)
	require.NoError(t, err)
	require.NotEqual(t, bundled.Name[len(bundled.Name)-10:], other.Name[len(other.Name)-10:])
}

func TestABundleHasAValidName(t *testing.T) {
	for _, owner := range []string{"a", strings.Repeat("a", 253), strings.Repeat("a", 229) + ".b", "a.b-c"} {
		bundled, _, err := bundle(manifestOf(t, strings.Replace(fitManifest, "name: fit", "name: "+owner, 1)), nil)
		require.NoError(t, err)
		require.Empty(t, validation.IsDNS1123Subdomain(bundled.Name), bundled.Name)
	}
	names := map[string]bool{}
	for range 2 {
		bundled, _, err := bundle(
			manifestOf(t, strings.Replace(fitManifest, "name: fit", "generateName: fit-", 1)),
			nil,
		)
		require.NoError(t, err)
		require.Regexp(t, `^fit-inputs-[0-9a-f]{10}$`, bundled.Name)
		names[bundled.Name] = true
	}
	require.Len(t, names, 2, "each HTCJob has its own")
}

func TestInputsThatDoNotFitTheManifestAreRefused(t *testing.T) {
	for rest, words := range map[string]string{
		"  inputs:\n  - {name: fit.yaml, url: 'https://x/y'}\n": "the HTCJob has an input fit.yaml already",
		"  inputs: 5\n": "inputs of the HTCJob: json: cannot unmarshal number",
	} {
		_, _, err := bundle(manifestOf(t, fitManifest+rest), []input{{"fit.yaml", nil}})
		require.ErrorAs(t, err, &setting.Usage{})
		require.ErrorContains(t, err, words)
	}
	for _, rest := range []string{"  inputs: null\n", "  inputs: []\n", ""} {
		_, m, err := bundle(manifestOf(t, fitManifest+rest), []input{{"fit.yaml", nil}})
		require.NoError(t, err)
		require.True(t, json.Valid(m.text))
		require.Contains(t, string(m.text), `"inputs":[{"name":"fit.yaml"`)
	}
	_, m, err := bundle(manifestOf(t, fitManifest[:strings.Index(fitManifest, "spec")]), []input{{"fit.yaml", nil}})
	require.NoError(t, err)
	require.Contains(t, string(m.text), `"spec":{"inputs":[`)
}

func owner(uid string) *v1alpha1.HTCJob {
	return &v1alpha1.HTCJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "fit", UID: types.UID(uid)}}
}

func TestABundleBelongsToItsHTCJob(t *testing.T) {
	client := fake.NewClientset()
	c := &cluster{namespace: "ns", configMaps: client.CoreV1().ConfigMaps("ns")}
	bundled, _, err := bundle(manifestOf(t, fitManifest), []input{{"fit.yaml", []byte("a")}})
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, c.createBundle(t.Context(), bundled, objectOf(owner("1"))), "the second time it is there")
	}
	there, err := c.configMaps.Get(t.Context(), bundled.Name, metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(
		t,
		[]metav1.OwnerReference{{APIVersion: "htc.cern.ch/v1alpha1", Kind: "HTCJob", Name: "fit", UID: "1"}},
		there.OwnerReferences,
	)
	require.Empty(t, bundled.OwnerReferences)

	// That of an HTCJob which was deleted is about to be deleted.
	gets := 0
	client.PrependReactor("get", "configmaps", func(k8stesting.Action) (bool, runtime.Object, error) {
		if gets++; gets == 2 {
			require.NoError(
				t,
				client.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("configmaps"), "ns", bundled.Name),
			)
		}
		return false, nil, nil
	})
	require.NoError(t, c.createBundle(t.Context(), bundled, objectOf(owner("2"))))
	require.Equal(t, 2, gets)
	there, err = c.configMaps.Get(t.Context(), bundled.Name, metav1.GetOptions{})
	require.NoError(t, err)
	require.EqualValues(t, "2", there.OwnerReferences[0].UID)

	require.NoError(t, c.configMaps.Delete(t.Context(), bundled.Name, metav1.DeleteOptions{}))
	_, err = c.configMaps.Create(
		t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: bundled.Name}, Data: bundled.Data},
		metav1.CreateOptions{},
	)
	require.NoError(t, err)
	require.ErrorContains(
		t,
		c.createBundle(t.Context(), bundled, objectOf(owner("2"))),
		"not from htcd submit: rename or delete it",
	)
}

func TestABundleThatIsNoLongerNamedIsDeleted(t *testing.T) {
	mine := []metav1.OwnerReference{{Kind: "HTCJob", Name: "fit", UID: "1"}}
	client := fake.NewClientset(
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "fit-inputs-0", OwnerReferences: mine}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "fit-inputs-1", OwnerReferences: mine}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "fit-inputs-2"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "other", OwnerReferences: mine}},
	)
	c := &cluster{namespace: "ns", configMaps: client.CoreV1().ConfigMaps("ns")}
	naming := func(job *v1alpha1.HTCJob, names ...string) *v1alpha1.HTCJob {
		for _, name := range names {
			job.Spec.Inputs = append(
				job.Spec.Inputs,
				v1alpha1.Input{Name: name, ConfigMapKeyRef: &v1alpha1.KeyRef{Name: name, Key: "k"}},
			)
		}
		return job
	}
	left := func() (names []string) {
		list, err := c.configMaps.List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for _, m := range list.Items {
			names = append(names, m.Name)
		}
		return names
	}
	before := naming(owner("1"), "fit-inputs-0", "fit-inputs-1", "fit-inputs-2", "other", "fit-inputs-none")
	c.dropBundles(t.Context(), objectOf(before), objectOf(owner("2")))
	require.Len(t, left(), 4)
	c.dropBundles(t.Context(), objectOf(before), objectOf(naming(owner("1"), "fit-inputs-1")))
	require.Equal(t, []string{"fit-inputs-1", "fit-inputs-2", "other"}, left(), "not that of somebody else")
}

func TestWithoutTheRightToMakeConfigMapsNothingIsSent(t *testing.T) {
	client := fake.NewClientset()
	client.PrependReactor("create", "configmaps", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource("configmaps"), "", errors.New("no right"))
	})
	c := &cluster{
		namespace:  "ns",
		configMaps: client.CoreV1().ConfigMaps("ns"),
	} // there is nothing to send an HTCJob with
	_, err := c.applyWith(
		t.Context(),
		manifestOf(t, fitManifest),
		brought{files: []input{{"fit.yaml", nil}}},
		nil,
		io.Discard,
	)
	require.ErrorContains(t, err, "--input needs the right to create and get ConfigMaps in namespace ns")
	going := owner("1")
	going.DeletionTimestamp = &metav1.Time{}
	_, err = c.applyWith(t.Context(), manifestOf(t, fitManifest), brought{}, objectOf(going), io.Discard)
	require.ErrorContains(
		t,
		err,
		"is being deleted: wait for that (kubectl wait -n ns --for=delete htcjob.htc.cern.ch/fit), and submit it again",
	)
}
