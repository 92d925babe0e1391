package plaintext

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestWhatWouldChangeHowATextIsShownIsReplaced(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "",
		"Disk quota exceeded (by user a)":    "Disk quota exceeded (by user a)",
		"ä€😀":                                "ä€😀",
		"two\nlines\tand a tab":              "two lines and a tab",
		"a\r\nb":                             "a␍ b",
		"\x1b]0;title\a\x1b[2J":              "␛]0;title␇␛[2J",
		"\x00\x08\x7f":                       "␀␈␡",
		"\u009b2J\u0085":                     "�2J�",
		"is \u202egnp.exe\u202c \u2066x":     "is �gnp.exe� �x",
		"a\u200bb\u2028c\u2029d\ufeff":       "a�b�c�d�",
		"half a character \xc3 and \xff\xfe": "half a character � and ��",
	} {
		require.Equal(t, want, Line(text))
	}
	require.Equal(t, "a\n\tb␛", Lines("a\n\tb\x1b"))
}

func FuzzLine(f *testing.F) {
	f.Add("a\x1b\u202e\xff\n")
	f.Fuzz(func(t *testing.T, text string) {
		is := Line(text)
		require.True(t, utf8.ValidString(is))
		require.Equal(t, is, Line(is))
		require.NotContains(t, is, "\n")
		require.NotContains(t, is, "\x1b")
		require.NotContains(t, is, "\u202e")
	})
}
