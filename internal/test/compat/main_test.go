package compat_test

import (
	"testing"

	"github.com/memhost/memhost/internal/test/testcache"
)

func TestMain(m *testing.M) { testcache.Run(m) }
