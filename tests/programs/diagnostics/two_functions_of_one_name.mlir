// RUN: tfrt_translate -mlir-to-bef -verify-diagnostics
func.func @f() { // expected-note {{see existing symbol definition here}}
  tfrt.return
}
func.func @f() { // expected-error {{redefinition of symbol named 'f'}}
  tfrt.return
}
