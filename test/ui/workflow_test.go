package ui

import (
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// scan measures something in each of six sequences, of which the fifth fails in its fit.
const scan = `
apiVersion: htc.cern.ch/v1alpha1
kind: HTCWorkflow
metadata: {name: scan}
spec:
  sequences: {count: 6, prefix: run-}
  steps:
  - name: simulate
    forEach: {count: 2}
    job: {script: {image: centos, command: bash, source: "echo part $1 of $jobid; echo events=10$1.$RANDOM > $HTC_RESULTS"}}
  - name: fit
    job: {script: {image: centos, command: bash, source: "if [ $jobid = run-4 ]; then echo '<script>window.hostile=1</script>'; echo 'no convergence after 500 steps' >&2; exit 3; fi; echo fitted | tee fit.txt"}}
  - name: plot
    pairing: All
    job: {script: {image: centos, command: bash, source: "echo plotted"}}
`

func TestAWorkflowIsDrawnAndACellLeadsToItsLog(t *testing.T) {
	b := trial.New(t)
	b.ApplyText(scan)
	pool := b.Pool("full", `{"state":"Draining","limits":{"maxOpen":50}}`)
	b.Create("waits", "echo", trial.Queue(2), func(job *v1alpha1.HTCJob) { job.Spec.Pool = &v1alpha1.Pool{Name: pool} })
	p := tab{t, browser(t)}
	p.size(1000, 700)
	run(p, chromedp.Navigate(served(t, b, "--kubeconfig", b.Lab.Kubeconfig(), "-n", b.Namespace)))

	p.goes(
		`a[href$="/pools"]`,
		fmt.Sprintf(`[...document.querySelectorAll("#rows a")].some(a => a.textContent == %q)`, pool),
	)
	p.goes(`#rows a[href$="/`+pool+`"]`, `document.querySelector("#waiting")`)
	require.Contains(t, p.text(), b.Namespace+"/waits")
	require.Regexp(t, `Open jobs maxOpen\s+0\s+50`, p.text())
	require.Contains(t, p.text(), "Draining: nothing new is sent")

	p.goes(`a[href$="/workflows"]`, seen("#rows a"))
	p.goes(`#rows a`, `document.querySelectorAll(".graph .box").length == 3`)
	p.until(`document.getElementById("phase").textContent == "Failed" && document.querySelector(".failure .stderr")`)
	require.Equal(t, "dddddddddfdd", eval[string](p, `document.getElementById("cells").dataset.cells`))
	require.Equal(t, 12, eval[int](p, `document.querySelectorAll("#cells a").length`))
	require.Contains(t, eval[string](p, `document.querySelector(".failure").innerText`), "fit/run-4 ✗ exit code 3")
	p.picture("ui-workflow")
	p.harmless()
	p.size(360, 740)
	p.until(`(() => {
		const [names, cells] = [".heads", ".group:not(.heads)"].map((group) =>
			[...document.querySelector("#cells " + group).children].map((e) => e.getBoundingClientRect()));
		return names.length > 2 && names.every((name, i) =>
			Math.abs(name.left - cells[i].left) < 1 && Math.abs(name.right - cells[i].right) < 1);
	})()`) // each name is above its cells
	p.size(1000, 700)
	p.goes(`#cells a.c-failed`, seen("#one .stderr"))
	require.Contains(t, eval[string](p, `document.getElementById("one").innerText`), "no convergence after 500 steps")
	p.goes(`#one a[href*="stream=stdout"]`, `document.getElementById("state").textContent == "this is all of it"`)
	require.Equal(
		t,
		"<script>window.hostile=1</script>\n",
		eval[string](p, `document.getElementById("log").textContent`),
	)
	p.goes(`main p a`, `document.querySelectorAll(".graph a").length == 3`)
	p.goes(`.graph a[aria-label^="plot"]`, `document.querySelector("#one a[href*=log]")`)
	p.harmless()
	p.readable()
}

// readable requires of a page that everything has a name, that text can be told from what is behind it, light and dark,
// and that nothing is wider than a phone.
func (p tab) readable() {
	p.t.Helper()
	require.Empty(
		p.t,
		eval[[]string](
			p,
			`[...document.querySelectorAll("a[href], button, input:not([type=hidden]), svg[role=img], [tabindex='0']")]
		.filter(e => !(e.innerText || e.textContent || e.getAttribute("aria-label") || (e.labels && e.labels.length))).map(e => e.outerHTML)`,
		),
	)
	p.size(360, 740)
	p.until(`document.documentElement.scrollWidth <= 360`)
	for _, scheme := range []string{"light", "dark"} {
		_, err := chromedp.Call(
			p.Context,
			emulation.SetEmulatedMedia,
			emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
			},
		)
		require.NoError(p.t, err)
		p.until(fmt.Sprintf(`matchMedia("(prefers-color-scheme: %s)").matches`, scheme))
		require.Empty(p.t, eval[[]string](p, contrast), scheme)
	}
	p.size(1200, 760)
}

// contrast lists texts whose contrast to what is behind them is below 4.5, that of WCAG's level AA.
const contrast = `(() => {
	const light = (c) => { const [r, g, b] = c.map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
	const numbers = (c) => c.match(/[\d.]+/g).map(Number);
	const behind = (e) => { for (; e; e = e.parentElement) { const c = numbers(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c.slice(0, 3); } return numbers(getComputedStyle(document.body).backgroundColor).slice(0, 3); };
	const poor = [];
	for (const e of document.querySelectorAll("body *")) {
		if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) || !e.checkVisibility() || e.closest("svg, script, style")) continue;
		const [a, b] = [light(numbers(getComputedStyle(e).color).slice(0, 3)), light(behind(e))];
		const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		if (ratio < 4.5) poor.push(ratio.toFixed(2) + " " + e.className + " " + e.textContent.slice(0, 30));
	}
	return poor;
})()`
