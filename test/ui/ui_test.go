// Package ui tests the page of htcd ui in a real browser, against the lab.
package ui

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// markup would run, or be seen, if it were not shown as text.
const markup = `<img src=x onerror=window.hostile=1><script>window.hostile=1</script>`

// hostile fails, and leaves markup wherever a job can.
const hostile = `printf '%s \033[31mred\n' "` + markup + `"
echo x > '<img src=x onerror=window.hostile=1>.txt'
printf '%s\n' '` + markup + `' >&2; exit 3`

// energies fails in its eighth job.
const energies = `energy=$((13000 - 500 * $1)); echo "number $1: $energy GeV" | tee result.txt
if [ "$1" = 7 ]; then echo "fit: chi2/ndf = 48.1 at $energy GeV: no convergence after 500 steps" >&2; exit 3; fi`

// harmless requires that nothing of it was run, or became an element.
func (p tab) harmless() {
	p.t.Helper()
	require.False(
		p.t,
		eval[bool](p, `"hostile" in window || !!document.querySelector("main img, main script, main iframe")`),
	)
}

// goes clicks, and waits for what is there then, of a link to another page in that page. The page may change what is
// clicked at any time, so this is not done by the mouse.
func (p tab) goes(click, until string) {
	p.t.Helper()
	p.until(seen(click))
	eval[any](p, `((e) => {
		const href = e.getAttribute("href");
		const page = (url) => url.split("#")[0];
		window.leaving = href !== null && page(new URL(href, document.baseURI).href) != page(location.href);
		e.dispatchEvent(new MouseEvent("click", {bubbles: true, cancelable: true}));
	})(`+seen(click)+`)`)
	p.until(`!window.leaving && (` + until + `)`)
}

func seen(selector string) string { return fmt.Sprintf("document.querySelector(%q)", selector) }

func TestAFailedJobIsFoundAndReadWithoutTypingItsName(t *testing.T) {
	b := trial.New(t)
	b.Create("energies", energies, trial.Queue(20))
	anna, _ := trial.User(t, b.Namespace)
	p := tab{t, browser(t)}
	p.size(1000, 620)
	run(p, chromedp.Navigate(served(t, b, "--kubeconfig", anna)))

	// The list follows what happens.
	p.until(`document.querySelector("#rows .row .word").textContent == "Failed"`)
	require.Regexp(t, `19 done, 1 failed`, p.text())
	b.Fetched("energies")
	p.until(`document.querySelector("#rows .note").textContent.includes("exit code 3: fit: chi2/ndf")`)
	b.Create("later", "echo", trial.Queue(3), func(job *v1alpha1.HTCJob) { job.Spec.Suspend = true })
	p.until(
		`document.querySelectorAll("#rows .row").length == 2 && document.querySelector("#rows .row .word").textContent == "Suspended"`,
	)
	run(p, chromedp.SendKeys("#filter", "failed ener"))
	p.until(`document.getElementById("shown").textContent == "1 of 2 shown"`)
	p.until(`!document.querySelector("[id$='/later']")`)
	run(p, chromedp.SendKeys("#filter", "x"))
	p.until(`!document.getElementById("none").hidden`)
	require.Equal(t, "None of them has all these words.", eval[string](p, `document.getElementById("none").innerText`))
	run(p, chromedp.SendKeys("#filter", strings.Repeat(kb.Backspace, len("failed enerx"))))
	p.until(`document.getElementById("shown").textContent == "2 shown"`)
	p.goes(`button[data-sort=name]`, `document.querySelector("#rows .row a").textContent == "energies"`)
	p.goes(`button[data-sort=name]`, `document.querySelector("#rows .row a").textContent == "later"`)
	require.NoError(t, b.Jobs.Delete(t.Context(), "later", metav1.DeleteOptions{}))
	p.until(`document.querySelectorAll("#rows .row").length == 1`)
	p.readable()

	// From the list to the failure, its log and its files.
	p.goes(`#rows a`, seen("#cells a.c-failed"))
	p.until(`document.querySelector(".failure .stderr") && document.querySelectorAll("#cells a.c-done").length == 19`)
	require.Contains(t, eval[string](p, `document.querySelector(".failure").innerText`), "no convergence")
	p.picture("ui-job")
	require.Equal(
		t,
		"7: failed",
		eval[string](p, `document.querySelector("#cells a.c-failed").getAttribute("aria-label")`),
	)
	eval[any](p, `document.querySelector("#cells a").focus()`)
	run(p, chromedp.KeyEvent(kb.ArrowRight+kb.End+kb.ArrowLeft))
	require.Equal(
		t,
		"18: done",
		eval[string](p, `document.activeElement.getAttribute("aria-label")`),
		"the keyboard reaches every cell",
	)
	p.readable()
	p.goes(`#cells a.c-failed`, seen("#one .files"))
	text := eval[string](
		p,
		`fetch([...document.querySelectorAll("#one .files a")].find(a => a.textContent == "result.txt").href)
		.then(async r => r.headers.get("Content-Disposition") + " " + r.headers.get("Content-Type") + " " + await r.text())`,
		chromedp.EvalAwaitPromise,
	)
	require.Equal(t, "attachment; filename=result.txt application/octet-stream number 7: 9500 GeV\n", text)
	p.goes(`#one a[href*="stream=stdout"]`, `document.getElementById("state").textContent == "this is all of it"`)
	require.Equal(t, "number 7: 9500 GeV\n", eval[string](p, `document.getElementById("log").textContent`))
}

func TestMarkupOfAJobIsShownAsText(t *testing.T) {
	b := trial.New(t)
	b.Create("hostile", hostile)
	p := tab{t, browser(t)}
	run(p, chromedp.Navigate(served(t, b, "--kubeconfig", b.Lab.Kubeconfig(), "-n", b.Namespace)))
	b.Fetched("hostile")
	p.until(`document.querySelector("#rows .note").textContent.includes("exit code 3: <img")`)
	p.harmless()
	p.goes(`#rows a`, `document.querySelector(".failure .stderr")`)
	require.Contains(t, eval[string](p, `document.querySelector(".failure").innerText`), markup)
	require.Contains(t, eval[string](p, `document.querySelector(".told").innerText`), markup, "a condition")
	p.harmless()
	p.goes(`#cells a.c-failed`, seen("#one .files"))
	require.Contains(
		t,
		eval[string](p, `document.querySelector("#one .files").innerText`),
		"<img src=x onerror=window.hostile=1>.txt\t2 bytes",
	)
	p.harmless()
	text := eval[string](
		p,
		`fetch(document.querySelector("#one .files a[href*=onerror]").href).then(r => r.text())`,
		chromedp.EvalAwaitPromise,
	)
	require.Equal(t, "x\n", text)
	p.goes(`#one a[href*="stream=stdout"]`, `document.getElementById("state").textContent == "this is all of it"`)
	require.Equal(t, markup+" ␛[31mred\n", eval[string](p, `document.getElementById("log").textContent`))
	p.harmless()
}

func TestWhatKubectlWouldDoIsAskedOnceAndDone(t *testing.T) {
	b := trial.New(t)
	b.Create("simulate", "sleep 600")
	b.Phase("simulate", v1alpha1.PhaseRunning)
	anna, _ := trial.User(t, b.Namespace)
	p := tab{t, browser(t)}
	run(p, chromedp.Navigate(served(t, b, "--kubeconfig", anna)))
	p.until(seen("#rows a"))
	p.goes(`#rows a`, `document.getElementById("phase").textContent == "Running"`)
	p.goes(`#operation-suspend summary`, seen("#operation-suspend[open]"))
	require.Equal(
		t,
		"kubectl patch htcjob simulate -n "+b.Namespace+` --type=merge -p '{"spec":{"suspend":true}}'`,
		eval[string](p, `document.querySelector("#operation-suspend pre").textContent`),
	)
	p.goes(`#operation-suspend button`, `document.getElementById("phase").textContent == "Suspended"`)
	require.True(t, b.Get("simulate").Spec.Suspend)
	p.goes(`#operation-resume summary`, seen("#operation-resume[open]"))
	p.goes(`#operation-resume button`, `document.getElementById("phase").textContent == "Running"`)
	p.until(`document.querySelectorAll(".attempts > li").length == 2`)
	p.goes(`#operation-delete summary`, seen("#operation-delete[open]"))
	p.goes(`#operation-delete button`, `document.querySelector("h1").textContent == "HTCJobs"`)
	p.until(`document.querySelectorAll("#rows .row").length == 0`)
	b.Eventually(func() bool {
		_, err := b.Jobs.Get(t.Context(), "simulate", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, func() string { return "it was not deleted" })
}

func TestOnlyWhatTheUserMaySeeIsShownAndToOneBrowserOnly(t *testing.T) {
	mine, theirs := trial.New(t), trial.New(t)
	suspended := func(job *v1alpha1.HTCJob) { job.Spec.Suspend = true }
	mine.Create("mine", "echo", suspended)
	theirs.Create("theirs", "echo", suspended)
	anna, _ := trial.User(t, mine.Namespace)
	address := served(t, mine, "--kubeconfig", anna)
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	client := &http.Client{Jar: jar}
	get := func(address string, change ...func(*http.Request)) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		require.NoError(t, err)
		for _, c := range change {
			c(r)
		}
		answer, err := client.Do(r)
		require.NoError(t, err)
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		return answer.StatusCode, string(text)
	}
	rebound := func(r *http.Request) { r.Host = "evil.example" }
	code, _ := get(address, rebound)
	require.Equal(t, http.StatusForbidden, code)
	code, text := get(address)
	require.Equal(t, http.StatusOK, code)
	_, text, _ = strings.Cut(text, `<a href="`)
	base, _, _ := strings.Cut(text, `"`)
	server, err := url.Parse(address)
	require.NoError(t, err)
	home := "http://" + server.Host + base
	code, text = get(home)
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, text, "/mine\"")
	require.NotContains(t, text, "theirs")
	code, _ = get(home + "htcjob/" + theirs.Namespace + "/theirs")
	require.Equal(t, http.StatusNotFound, code)
	code, text = get(home + "logtext/htcjob/" + theirs.Namespace + "/theirs?proc=0&stream=stdout")
	require.Equal(t, http.StatusBadGateway, code)
	require.Contains(t, text, "cannot get resource")
	code, _ = get(home, rebound)
	require.Equal(t, http.StatusForbidden, code)
	code, _ = get(home, func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") })
	require.Equal(t, http.StatusForbidden, code)
	client.Jar = nil
	for _, again := range []string{address, home} {
		code, _ = get(again)
		require.Equal(t, http.StatusForbidden, code, "another browser")
	}
}
