//! The declared instances: the product of the axes of `instances(..)`, each giving every generic parameter a value.

use crate::ast::{GenericArg, GenericArgValue, GenericKind, GenericParam, InstanceValue, KernelItem, TypeKind};
use crate::consts::ConstValue;
use crate::ctxt::Ctxt;
use crate::items::{FnEnv, Generics, Items};
use proc_macro2::{Span, TokenStream, TokenTree};
use quote::quote;
use titan_core::collections::SortedMap;
use titan_core::diag::{Code, Diagnostic};
use titan_core::ir::{Elem, InstanceArg};

/// One declared instance.
#[derive(Debug, Clone)]
pub(crate) struct Instance {
    /// The values as written, in the order of the generic parameters.
    pub(crate) tokens: Vec<TokenStream>,
    /// The values for messages and for the IR, in the same order.
    pub(crate) args: Vec<InstanceArg>,
    pub(crate) generics: Generics,
}

impl Instance {
    /// `gemm::<f16, 128>`, as the IR names it.
    pub(crate) fn full_name(&self, kernel: &str) -> String {
        let args: Vec<&str> = self.args.iter().map(|a| a.value.as_str()).collect();
        if args.is_empty() { kernel.to_owned() } else { format!("{kernel}::<{}>", args.join(", ")) }
    }
}

/// The largest number of instances of one kernel. Each is compiled for every target.
const MAX_INSTANCES: usize = 256;

/// All declared instances; reports values that do not match the generic parameters.
pub(crate) fn expand(cx: &Ctxt, item: &KernelItem, items: &Items) -> Vec<Instance> {
    let func = &item.func;
    let mut named: Vec<String> = Vec::new();
    for axis in &item.config.instances {
        for name in &axis.names {
            let text = name.to_string();
            if !func.generics.iter().any(|g| g.name == text) {
                cx.error(
                    Code::Generics,
                    name.span(),
                    format!("`{text}` is not a generic parameter of `{}`", func.name),
                );
            }
            if named.contains(&text) {
                cx.error(Code::Generics, name.span(), format!("`{text}` is listed twice in `instances`"));
            }
            named.push(text);
        }
    }
    for g in &func.generics {
        if g.kind == GenericKind::Shape {
            let help = "in a kernel, write extents as constant parameters: `const BM: i32`";
            cx.error_help(
                Code::Generics,
                g.name.span(),
                format!("`{}: Shape` is only allowed in device functions", g.name),
                help,
            );
        }
    }
    let lacking = |g: &&GenericParam| g.kind != GenericKind::Shape && !named.contains(&g.name.to_string());
    let without: Vec<&GenericParam> = func.generics.iter().filter(lacking).collect();
    if let Some((last, others)) = without.split_last() {
        let names: Vec<String> = others.iter().map(|g| format!("`{}`", g.name)).collect();
        let title = match &names[..] {
            [] => format!("generic parameter `{}` has no values in `instances`", last.name),
            names => {
                format!("generic parameters {} and `{}` have no values in `instances`", names.join(", "), last.name)
            }
        };
        let lists: Vec<String> = without.iter().map(|g| format!("{} in [..]", g.name)).collect();
        let help = format!("list them: `#[titan::kernel(instances({}))]`", lists.join(", "));
        cx.error_help(Code::Generics, without[0].name.span(), title, help);
    }
    if cx.has_errors() {
        return Vec::new();
    }
    let rows = product(item);
    if rows.len() > MAX_INSTANCES {
        let title = format!("`instances` lists {} instances; at most {MAX_INSTANCES} can be compiled", rows.len());
        cx.error(Code::Generics, func.name.span(), title);
        return Vec::new();
    }
    let instances: Vec<Instance> = rows.iter().filter_map(|row| instance(cx, item, items, row)).collect();
    if instances.len() == rows.len() {
        distinct(cx, item, &rows, &instances);
    }
    instances
}

/// Reports an instance that is listed a second time, at the first of its values that is.
fn distinct(cx: &Ctxt, item: &KernelItem, rows: &[Row<'_>], instances: &[Instance]) {
    let mut seen: SortedMap<String, usize> = SortedMap::new();
    for (i, instance) in instances.iter().enumerate() {
        let name = instance.full_name(&item.func.name.to_string());
        let Some(first) = seen.get(&name).copied() else {
            seen.insert(name, i);
            continue;
        };
        // The product repeats the values of the other lists: these are the same ones, not others of the same value.
        let mut values = item.func.generics.iter().filter_map(|g| {
            let of = |row: usize| rows.get(row)?.get(&g.name.to_string()).copied();
            of(first).zip(of(i))
        });
        if let Some((one, two)) = values.find(|(one, two)| !std::ptr::eq(*one, *two)) {
            let title = format!("`instances` lists `{name}` twice");
            let error = Diagnostic::new(Code::Generics, two.span, title).related(one.span, "it is listed here first");
            cx.push(error.help("remove one of the two"));
        }
    }
}

/// The arguments of every declared instance as written, in the order of the generic parameters.
pub(crate) fn written(item: &KernelItem) -> Vec<Vec<String>> {
    let name =
        |row: &Row<'_>, g: &GenericParam| row.get(&g.name.to_string()).map_or("_".to_owned(), |v| v.tokens.to_string());
    product(item).iter().map(|row| item.func.generics.iter().map(|g| name(row, g)).collect()).collect()
}

/// The values of one instance, by the names of the generic parameters.
type Row<'a> = SortedMap<String, &'a InstanceValue>;

/// The product of the axes, the last one varying fastest; cut off at four times the limit.
fn product(item: &KernelItem) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> = vec![SortedMap::new()];
    for axis in &item.config.instances {
        let extended = rows.iter().flat_map(|row| {
            axis.values.iter().map(move |values| {
                let mut row = row.clone();
                row.extend(axis.names.iter().map(ToString::to_string).zip(values));
                row
            })
        });
        rows = extended.take(MAX_INSTANCES * 4).collect();
    }
    rows
}

fn instance(cx: &Ctxt, item: &KernelItem, items: &Items, row: &SortedMap<String, &InstanceValue>) -> Option<Instance> {
    let mut out = Instance { tokens: Vec::new(), args: Vec::new(), generics: Generics::default() };
    for g in &item.func.generics {
        let name = g.name.to_string();
        let value = row.get(&name)?;
        out.tokens.push(argument(g.kind, &value.tokens));
        let text = match g.kind {
            GenericKind::Elem => {
                let elem = elem_value(cx, value, &name)?;
                within_bounds(cx, g, elem, value.span)?;
                out.generics.elems.insert(name.clone(), elem);
                elem.name().to_owned()
            }
            GenericKind::Shape => return None,
            GenericKind::ConstInt(_) | GenericKind::ConstBool => {
                let v = const_value(cx, item, items, value, g.kind, &name)?;
                out.generics.consts.insert(name.clone(), v);
                match v {
                    ConstValue::Int(v) => v.to_string(),
                    ConstValue::Bool(v) => v.to_string(),
                    ConstValue::Float(v) => v.to_string(),
                }
            }
        };
        out.args.push(InstanceArg { name, value: text });
    }
    Some(out)
}

/// A value as a generic argument: constants are put in braces unless they are one literal, because a name without braces
/// might be a type.
fn argument(kind: GenericKind, tokens: &TokenStream) -> TokenStream {
    let is_const = matches!(kind, GenericKind::ConstInt(_) | GenericKind::ConstBool);
    let mut it = tokens.clone().into_iter();
    let word = |i: &proc_macro2::Ident| *i == "true" || *i == "false";
    let literal = match (it.next(), it.next()) {
        (Some(TokenTree::Literal(_)), None) => true,
        (Some(TokenTree::Ident(i)), None) => word(&i),
        _ => false,
    };
    if is_const && !literal { quote!({ #tokens }) } else { tokens.clone() }
}

fn elem_value(cx: &Ctxt, value: &InstanceValue, name: &str) -> Option<Elem> {
    let elem = match &value.value {
        GenericArgValue::Type(t) => match &t.kind {
            TypeKind::Elem(ident, _) => Elem::from_name(&ident.to_string()),
            _ => None,
        },
        GenericArgValue::Const(_) => None,
    };
    if elem.is_none() {
        let list: Vec<&str> = Elem::ALL.iter().map(|e| e.name()).collect();
        let title = format!("expected an element type for `{name}`, found `{}`", value.tokens);
        cx.error_help(Code::Generics, value.span, title, format!("element types: {}", list.join(", ")));
    }
    elem
}

/// Checks that an element type satisfies the bounds of its parameter, as far as they are traits of the language.
fn within_bounds(cx: &Ctxt, param: &GenericParam, elem: Elem, span: Span) -> Option<()> {
    for bound in &param.bounds {
        let fits: fn(Elem) -> bool = match bound.as_str() {
            "Float" => Elem::is_arith_float,
            "Int" => Elem::is_arith_int,
            "Num" => Elem::is_arith,
            "Bits" => |e| e.is_arith_int() || e == Elem::Bool,
            "Comparable" => |e| e.is_arith() || e == Elem::Bool,
            _ => continue,
        };
        if !fits(elem) {
            let list: Vec<&str> = Elem::ALL.iter().filter(|e| fits(**e)).map(|e| e.name()).collect();
            let title = format!("`{elem}` does not satisfy the bound `{}: {bound}`", param.name);
            cx.error_help(Code::Generics, span, title, format!("element types that do: {}", list.join(", ")));
            return None;
        }
    }
    Some(())
}

fn const_value(
    cx: &Ctxt,
    item: &KernelItem,
    items: &Items,
    value: &InstanceValue,
    kind: GenericKind,
    name: &str,
) -> Option<ConstValue> {
    let none = Generics::default();
    let env = FnEnv { func: &item.func, generics: &none, items };
    let v = match &value.value {
        GenericArgValue::Const(e) => crate::consts::eval(e, &env).ok(),
        GenericArgValue::Type(_) => {
            let arg = GenericArg { span: value.span, value: value.value.clone(), tokens: value.tokens.clone() };
            env.const_arg(&arg).ok().map(ConstValue::Int)
        }
    };
    let fits = match (kind, v) {
        (GenericKind::ConstBool, Some(ConstValue::Bool(_))) => true,
        (GenericKind::ConstInt(e), Some(ConstValue::Int(v))) => titan_core::ir::fold::wrap(e, v) == v,
        _ => false,
    };
    if !fits {
        let want = match kind {
            GenericKind::ConstInt(e) => e.name(),
            _ => "bool",
        };
        cx.error(
            Code::Generics,
            value.span,
            format!("expected a constant `{want}` for `{name}`, found `{}`", value.tokens),
        );
        return None;
    }
    v
}
