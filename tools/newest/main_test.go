package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An interface that changes in any of the ways that break a provider is reported, with its file; what is private and
// what only moved is not.
func TestChangesOfAnInterfaceAreReported(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed")
	}
	const before = `
class SearchRequest(BaseModel):
    query: str = Field(..., description="x")
    top_k: int = 10
    _hidden: int = 1

class Client:
    def search(self, query: str, *, limit: int = Field(10, ge=1, description="at most")): return self.post(f"/v1/{self.id}/search", query)
    def _inner(self): ...

@router.post("/add", summary="Add")
async def add(body: SearchRequest) -> None: ...

@mcp.tool()
async def clear(group_id: str | None = None): ...
`
	read := func(source string) string {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "api.py"), []byte(source), 0o644))
		text, err := output(t.Context(), strings.NewReader(outline), "python3", "-", dir, "*.py")
		require.NoError(t, err)
		return "thing 1.0\n" + text
	}
	old := read(before)
	assert.Equal(t, []string{"api.py: class SearchRequest(BaseModel)", "api.py: SearchRequest.query: str", "api.py: SearchRequest.top_k: int",
		"api.py: class Client()", "api.py: Client.search(self, query: str, *, limit: int=Field(10, ge=1)) [/v1/{}/search]", "api.py: add(body: SearchRequest) [POST /add]",
		"api.py: clear(group_id: str | None=None) [TOOL]"}, entries(old))
	for _, c := range []struct{ change, to, want string }{
		{"top_k: int = 10", "top_k: int = 10\n    depth: int = 2", "+ api.py: SearchRequest.depth: int"},
		{"    top_k: int = 10\n", "", "- api.py: SearchRequest.top_k: int"},
		{"Field(10, ge=1", "Field(20, ge=1", "+ api.py: Client.search(self, query: str, *, limit: int=Field(20, ge=1)) [/v1/{}/search]"},
		{"/search\"", "/find\"", "+ api.py: Client.search(self, query: str, *, limit: int=Field(10, ge=1)) [/v1/{}/find]"},
		{`"/add"`, `"/record"`, "+ api.py: add(body: SearchRequest) [POST /record]"},
		{"async def clear", "async def wipe", "- api.py: clear(group_id: str | None=None) [TOOL]"},
	} {
		assert.Contains(t, compare(old, read(strings.Replace(before, c.change, c.to, 1))), c.want)
	}
	assert.Empty(t, compare(old, read("# moved\n"+strings.ReplaceAll(before, "_inner", "_other"))))
	_, err := output(t.Context(), strings.NewReader(outline), "python3", "-", t.TempDir(), "gone.py")
	require.ErrorContains(t, err, "no file gone.py")
}

// Each backend has a snapshot with its version, and the lists of requirements that it is pinned in have that version.
func TestSnapshotsAreOfThePinnedVersions(t *testing.T) {
	for _, b := range backends {
		text, err := os.ReadFile(filepath.Join("snapshot", b.name+".txt"))
		require.NoError(t, err)
		project, version, _ := strings.Cut(first(string(text)), " ")
		assert.Equal(t, b.project, project)
		assert.NotEmpty(t, entries(string(text)))
		for _, name := range b.requirements {
			pins, err := os.ReadFile(filepath.Join("..", "..", "internal", "test", "testenv", "requirements", name+".txt"))
			require.NoError(t, err)
			assert.Contains(t, string(pins), "\n"+project+"=="+version+"\n", name)
		}
	}
}

func TestPinsBecomeProjects(t *testing.T) {
	assert.Equal(t, []string{"mem0ai==2.3.0", "neo4j<6", "pydantic"},
		projects("# a list\nmem0ai==2.2.1\nneo4j==5.28.8\npydantic==2.14.3\n", map[string]string{"mem0ai": "mem0ai==2.3.0"}))
}

// The versions that the kits run with are shown as differences from the pins, however a registry spells a name.
func TestTheVersionsThatMovedAreNamed(t *testing.T) {
	assert.Equal(t, []string{"fastapi 0.115.8 -> 0.165.0", "annotated-doc 0.0.7 (new)", "sniffio (gone)"},
		moved("# neo4j==6 does not go\nfalkordb==1.8.1\nfastapi==0.115.8\nhuggingface-hub==0.36.2\nsniffio==1.3.1\n",
			"FalkorDB==1.8.1\nfastapi==0.165.0\nhuggingface_hub==0.36.2\nannotated-doc==0.0.7\n"))
	assert.Equal(t, []string{"no difference"}, moved("neo4j==5.28.8\n", "neo4j==5.28.8\n"))
}
