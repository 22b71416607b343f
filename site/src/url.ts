// The state of the page is in its address: #/board/MIEB(lite)?sort=mean&q=siglip
import { useEffect, useState } from "preact/hooks";

export interface Place {
  view: string;
  name: string;
  params: URLSearchParams;
}

export function placeOf(hash: string): Place {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const [view = "", ...name] = path.split("/");
  return { view: decode(view), name: decode(name.join("/")), params: new URLSearchParams(query) };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // somebody typed it
  }
}

/** Text without halves of characters, which no address can hold. */
export const whole = (text: string): string => text.replace(/\p{Surrogate}/gu, "\ufffd");

export function address(view: string, name = "", params: Record<string, string> = {}): string {
  const query = new URLSearchParams(Object.entries(params).filter(([, value]) => value)).toString();
  return `#/${encodeURIComponent(whole(view))}${name && `/${encodeURIComponent(whole(name))}`}${query && `?${query}`}`;
}

/** Change parameters of the address; an empty value removes one. The page before stays one step back. */
export function setParams(changes: Record<string, string>): void {
  const place = placeOf(location.hash);
  for (const [name, value] of Object.entries(changes)) place.params.set(name, value);
  history.replaceState(null, "", address(place.view, place.name, Object.fromEntries(place.params)));
  dispatchEvent(new HashChangeEvent("hashchange"));
}

export function usePlace(): Place {
  const [place, setPlace] = useState(() => placeOf(location.hash));
  useEffect(() => {
    const changed = (): void => setPlace(placeOf(location.hash));
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return place;
}
