package conversations

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// positives are generated when the test runs, so that no scanner finds secrets in the repository: keys in the formats
// of services, and values that a setting, a header or an address identifies as a credential.
func positives() (texts []string) {
	random := rand.New(rand.NewPCG(1, 2))
	of := func(letters string, n int) string {
		var b strings.Builder
		for range n {
			b.WriteByte(letters[random.IntN(len(letters))])
		}
		return b.String()
	}
	const lower, upper, digits = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789"
	const all, hex = lower + upper + digits, "0123456789abcdef"
	keys := []func() string{
		func() string { return "sk-" + of(all, 48) }, func() string { return "sk-proj-" + of(all, 64) },
		func() string { return "sk-ant-api03-" + of(all, 90) }, func() string { return "sk-or-v1-" + of(hex, 64) },
		func() string { return "ghp_" + of(all, 36) }, func() string { return "gho_" + of(all, 36) },
		func() string { return "github_pat_" + of(all, 22) + "_" + of(all, 59) }, func() string { return "glpat-" + of(all, 20) },
		func() string { return "AKIA" + of(upper+"234567", 16) }, func() string { return "AIza" + of(all, 35) },
		func() string { return "ya29." + of(all, 60) }, func() string { return "GOCSPX-" + of(all, 28) },
		func() string { return "xoxb-" + of(digits, 12) + "-" + of(digits, 12) + "-" + of(all, 24) },
		func() string { return "xapp-1-A" + of(upper+digits, 10) + "-" + of(digits, 13) + "-" + of(hex, 64) },
		func() string { return "hf_" + of(lower+upper, 34) }, func() string { return "npm_" + of(all, 36) },
		func() string { return "pypi-AgEIcHlwaS5vcmc" + of(all, 60) }, func() string { return "dckr_pat_" + of(all, 27) },
		func() string { return "sk_live_" + of(all, 24) }, func() string { return "rk_live_" + of(all, 24) },
		func() string { return "whsec_" + of(all, 32) }, func() string { return "shpat_" + of(hex, 32) },
		func() string { return "SG." + of(all, 22) + "." + of(all, 43) }, func() string { return "lin_api_" + of(all, 40) },
		func() string { return "gsk_" + of(all, 52) }, func() string { return "r8_" + of(all, 37) },
		func() string { return "nvapi-" + of(all, 64) }, func() string { return "hvs." + of(all, 90) },
		func() string { return "tskey-auth-" + of(all, 20) + "-" + of(all, 30) }, func() string { return "PMAK-" + of(hex, 24) + "-" + of(hex, 34) },
		func() string { return "glsa_" + of(all, 32) + "_" + of(hex, 8) },
		func() string { return of(digits, 10) + ":AA" + of(all, 33) },
		func() string { return "eyJ" + of(all, 20) + ".eyJ" + of(all, 60) + "." + of(all, 43) },
		func() string {
			return "https://hooks.slack.com/services/T" + of(upper, 8) + "/B" + of(upper, 8) + "/" + of(all, 24)
		},
		func() string {
			return "-----BEGIN RSA PRIVATE KEY-----\n" + of(all, 64) + "\n-----END RSA PRIVATE KEY-----"
		},
	}
	around := []string{"my key is %s, do not tell", "%s", "export KEY=%s", `{"k": "%s"}`}
	for i, key := range keys {
		for n := range 4 {
			texts = append(texts, fmt.Sprintf(around[(i+n)%len(around)], key()))
		}
	}
	named := []string{`password = "%s"`, `DB_PASSWORD=%s`, `api_key: "%s"`, `"client_secret": "%s"`, `secret: '%s'`, `--password=%s`,
		`AWS_SECRET_ACCESS_KEY=%s`, `access_token=%s`, `password: %s`, `'password' => '%s'`, `apiKey: "%s",`, `private_key := "%s"`,
		`Authorization: Bearer %s`, `curl -H "X-API-Key: %s" x`, `postgres://ann:%s@db.internal/x`, `https://bot:%s@git.internal/r.git`,
		`passwd="%s"`, `refresh_token: "%s"`, `ENCRYPTION_KEY=%s`, `spring.datasource.password=%s`}
	for _, form := range named {
		for _, value := range []string{of(all, 16), of(lower, 5) + of(digits, 4), of(hex, 32), of(lower, 3) + "!" + of(digits, 3) + of(upper, 3)} {
			if strings.Contains(form, "Bearer") || strings.Contains(form, "X-API") {
				value = strings.ReplaceAll(value, "!", "-")
			}
			texts = append(texts, fmt.Sprintf(form, value))
		}
	}
	return texts
}

// negatives are lines of code, configuration and text about it without credentials. The Go lines come from the
// installed standard library.
func negatives(t *testing.T) (texts []string) {
	about := regexp.MustCompile(`(?i)(?:password|passwd|secret|api_?key|token|private_?key|access_?key|authorization)["']?\s*(?::=|=>|:|=)|sk-|key-|://\S+@`)
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(t, err)
	root := filepath.Join(strings.TrimSpace(string(goroot)), "src")
	for _, folder := range []string{"net/http", "net/url", "crypto", "cmd/go/internal", "go/parser", "encoding", "text", "os", "mime"} {
		_ = filepath.WalkDir(filepath.Join(root, folder), func(name string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() && d.Name() == "testdata" {
				return filepath.SkipDir
			}
			if d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return nil
			}
			source, err := os.ReadFile(name)
			require.NoError(t, err)
			for line := range strings.Lines(string(source)) {
				if about.MatchString(line) {
					texts = append(texts, strings.TrimSpace(line))
				}
			}
			return nil
		})
	}
	return append(texts, strings.Split(strings.TrimSpace(`
api_key=os.environ['KEY']
api_key = os.environ["OPENAI_API_KEY"]
client = OpenAI(api_key=os.getenv("OPENAI_API_KEY"))
password = getpass.getpass()
password=getpass.getpass("Password: ")
secret: process.env.SECRET
const secret = process.env.SESSION_SECRET || "";
access_token = session.get(...)
access_token = response.json()["access_token"]
self.api_key = api_key
self.password = password
this.apiKey = config.apiKey;
apiKey: config.get("apiKey"),
password: user.password,
password: String,
password: string;
password?: string | null;
password: str = Field(min_length=8)
password = forms.CharField(widget=forms.PasswordInput)
password = serializers.CharField(write_only=True)
private_key: Optional[str] = None
private_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
private_key=Ed25519PrivateKey.generate()
let secret = Secret::from_env()?;
let api_key = std::env::var("API_KEY")?;
token = auth.create_token(user)
auth_token = None
authToken: undefined,
refresh_token: Mapped[str] = mapped_column(String(255))
password: ${DB_PASSWORD}
password: $DB_PASSWORD
password: "{{ vault_password }}"
password: {{ .Values.password }}
password: !vault |
PASSWORD=$(cat /run/secrets/password)
API_KEY="$API_KEY"
API_KEY=your-api-key-here
OPENAI_API_KEY=sk-...
api_key: "YOUR_API_KEY"
api_key = "<your key>"
"apiKey": "INSERT_KEY_HERE",
secretKeyRef: {name: db, key: password}
secret_key: env:SECRET_KEY
private_key: /etc/ssl/private/server.key
private_key = ~/.ssh/id_ed25519
ssl_private_key: ./certs/key.pem
password_hash = bcrypt.hash(password, 12)
if password == other_password:
if (password !== confirmPassword) {
assert.equal(password, expected)
Authorization: Bearer $TOKEN
Authorization: Bearer ${TOKEN}
Authorization: Bearer <token>
Authorization: Bearer YOUR_TOKEN
headers = {"Authorization": f"Bearer {token}"}
"Authorization": "Bearer " + token,
req.Header.Set("Authorization", "Bearer "+token)
x-api-key: {{api_key}}
postgres://user:password@localhost/db
postgres://user:pass@localhost:5432/db
mysql://root:root@127.0.0.1/test
https://user:${TOKEN}@github.com/x/y
https://docs.local:8443/path@v2
https://example.com:8080/a?b=c@d
git clone ssh://git@github.com/x/y
see https://pkg.go.dev/golang.org/x/mod@v0.4.0
max_tokens: 4096
max_tokens=16384,
token_count = 1024
tokenizer: cl100k_base
num_key_value_heads: 16
Use locale sk-SK-translations-table for Slovak.
sk-learn-contrib-imbalanced
sk-internationalization-helpers
class="sk-folding-cube sk-cube-container"
risk-management-framework-2024
task-based-development
disk-utilization-report-weekly
desk-reservation-system
pk-primary-keys-in-tables
The secret: patience and practice.
password: see the note on the fridge
My password is stored in the manager.
What is a good password?
Password: required
password: "required",
"password": "password"
{"type": "password", "name": "password"}
label: "Password", secret: "Hidden",
<input type="password" name="password" placeholder="Password">
password=password
secret=secret
api_key=api_key
password = input2("x")
hash_algorithm = sha256, secret_algorithm: HS256
secret: "client_secret"
token_type: "Bearer"
"access_token": "string"
"accessToken": null,
api_key: null
api_key: true
PasswordAuthentication no
PermitRootLogin prohibit-password
secretName: app-credentials
imagePullSecrets: [{name: regcred}]
api_key_env: OPENAI_API_KEY
apiKeySecretRef: memory-api-key
access_key = boto3.Session().get_credentials().access_key
aws_secret_access_key = credentials.secret_key
public_key = private_key.public_key()
key-value-store-for-everything
monkey-patching-in-python
API_KEY=
API_KEY=""
password = ""
password = None
password: nil,
private_key=private_key_path,
secret = token_hex(32)
secret = secrets.token_urlsafe(32)
const apiKey = await getApiKey();
password := os.Getenv("PASSWORD")
password := r.FormValue("password")
Password: cfg.Password,
Secret: []byte(secret),
APIKey: opts.APIKey,
AccessKey string `+"`json:\"access_key\"`"+`
Token: token.String(),
`), "\n")...)
}

// TestCredentials checks the rates that docs/import.md states.
func TestCredentials(t *testing.T) {
	var missed, wrong []string
	yes, no := positives(), negatives(t)
	for _, text := range yes {
		if _, found := withoutCredentials(text); found == 0 {
			missed = append(missed, text)
		}
	}
	for _, text := range no {
		if got, found := withoutCredentials(text); found > 0 {
			wrong = append(wrong, text+"  ->  "+got)
		}
	}
	require.GreaterOrEqual(t, len(yes), 200)
	require.GreaterOrEqual(t, len(no), 200)
	t.Logf("%d of %d found, %d of %d wrong", len(yes)-len(missed), len(yes), len(wrong), len(no))
	require.LessOrEqual(t, len(missed)*100, len(yes), "missed: %s", strings.Join(missed, "\n"))
	require.LessOrEqual(t, len(wrong)*100, len(no), "wrong: %s", strings.Join(wrong, "\n"))
}
