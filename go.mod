module example.com/go-webhookcfg

go 1.26.0
