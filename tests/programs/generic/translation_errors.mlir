// RUN: tfrt_translate -mlir-to-bef -verify-diagnostics

// expected-error @+1 {{external functions are not allowed}}
func.func @declared()

// expected-error @+1 {{all functions need to have a tfrt.return}}
func.func @open() {
  "k.k"() : () -> ()
}
// -----

func.func @main() {
  "k.k"() {callee = @none} : () -> () // expected-error {{function @none not defined}}
  "tfrt.return"() : () -> ()
}
// -----

func.func @main() {
  "k.k"() {set = {a = 1}} : () -> () // expected-error {{BEF files cannot encode the 'set' attribute}}
  "tfrt.return"() : () -> ()
}
// -----

func.func @main(%a: i32) -> i32 attributes {tfrt.sync} {
  "tfrt.return"(%a) : (i32) -> () // expected-error {{return value 0 is an argument in a sync function}}
}
