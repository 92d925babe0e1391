package argoplugin

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestASpecIsAMappingOrAText(t *testing.T) {
	for text, says := range map[string]string{
		`{"queue": 3}`: "", `"queue: 3\n"`: "", `"queue: [\n"`: "is no HTCJob's spec", `"a: 1\na: 2"`: "is no HTCJob's spec",
		`[1]`: "is no HTCJob's spec", `"a word"`: "is no HTCJob's spec", `""`: "is empty", `null`: "is empty",
	} {
		is := template{
			Name:   "simulate",
			Plugin: map[string]json.RawMessage{jobKind.key: json.RawMessage(text)},
		}.task(
			"a",
		)
		if says == "" {
			require.NoError(t, is.Err, text)
			require.EqualValues(t, 3, is.Spec["queue"], text)
			continue
		}
		require.ErrorContains(t, is.Err, says, text)
	}
}

func TestArgosAgentIsAnswered(t *testing.T) {
	server := httptest.NewServer(Handler("secret"))
	defer server.Close()
	for what, c := range map[string]struct {
		path, token, body string
		code              int
		answer            string
	}{
		"a step for HTCJobs need not be asked about again": {"template.execute", "secret", `{"template": {"plugin": {"htcjob": {"script": {}}}}}`, 200, `{"node":{}}`},
		"nor one for HTCWorkflows":                         {"template.execute", "secret", `{"template": {"plugin": {"htcworkflow": {"steps": []}}}}`, 200, `{"node":{}}`},
		"another plugin's step is left to it":              {"template.execute", "secret", `{"template": {"plugin": {"slack": {}}}}`, 200, `{}`},
		"nobody else is answered":                          {"template.execute", "wrong", `{}`, 403, "this is not Argo's token\n"},
		"Argo learns what there is":                        {"workflow.preOperate", "secret", `{}`, 404, "404 page not found\n"},
		"nonsense is refused":                              {"template.execute", "secret", `{`, 400, "unexpected EOF\n"},
	} {
		t.Run(what, func(t *testing.T) {
			request, err := http.NewRequestWithContext(
				t.Context(),
				"POST",
				server.URL+"/api/v1/"+c.path,
				strings.NewReader(c.body),
			)
			require.NoError(t, err)
			request.Header.Set("Authorization", "Bearer "+c.token)
			answer, err := server.Client().Do(request)
			require.NoError(t, err)
			defer answer.Body.Close()
			require.Equal(t, c.code, answer.StatusCode)
			text, err := io.ReadAll(answer.Body)
			require.NoError(t, err)
			require.Equal(t, c.answer, string(text))
		})
	}
}
